# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The bars that this project set itself, and whether a run met them."""

from __future__ import annotations

import statistics
from typing import Any

Found = dict[str, Any]


# Milliseconds of CPU of the same releases on the machine that the bars were chosen on; and where they are here.
ELSEWHERE = {
    "a small call": ("small", "first_cpu_ms", {"rllm": 2.6, "agentlightning": 2.85, "nemo-gym": 2.58}),
    "a call of 30,000 tokens": ("large", "first_cpu_ms", {"rllm": 11.5, "agentlightning": 11.0, "nemo-gym": 10.0}),
    "a turn of a session of 100": ("growing", "cpu_ms_100", {"rllm": 8.3, "agentlightning": 8.4, "nemo-gym": 13.6}),
}


def elsewhere(run: Found) -> str:
    """How much slower this machine was: the median of the peers' ratios, per scenario."""
    factors = []
    for what, (scenario, key, there) in ELSEWHERE.items():
        ratios = [_median(run[scenario][name], key) / value for name, value in there.items()]
        factors.append(f"{statistics.median(ratios):.1f} times for {what}")
    return f"The same peers took more CPU here than there: {', '.join(factors)}."


def table(found: Found) -> str:
    rows = [
        f"| {what} ≤ {bar:g} {unit} | {_shown(values)} | {verdict(bar, values)} |"
        for what, bar, unit, values in _bars(found)
    ]
    return "\n".join(["| bar | measured here | |", "| --- | --- | --- |", *rows])


def verdict(bar: float, values: dict[str, float]) -> str:
    """A figure that was not measured is not met."""
    met = [name for name, value in values.items() if value <= bar]
    if len(met) == len(values):
        return "met"
    return f"met: {', '.join(met)}; missed: the others" if met else "missed"


def _shown(values: dict[str, float]) -> str:
    return "<br>".join(f"{name}: {value:.3g}" for name, value in values.items())


def _bars(found: Found) -> list[tuple[str, float, str, dict[str, float]]]:
    run = found["side_by_side"]
    ours = {"tokens mode": "polar", "chat mode": "polar-chat"}
    small = {f"{mode}, {kind}": _median(run["small"][name], key) for mode, name in ours.items() for kind, key in KINDS}
    large = {f"{mode}, {kind}": _median(run["large"][name], key) for mode, name in ours.items() for kind, key in KINDS}
    growing = {mode: _median(run["growing"][name], "cpu_ms_100") for mode, name in ours.items()}
    disk = {mode: _median(run["growing"][name], "disk_bytes_per_token") for mode, name in ours.items()}
    longest = run["linear"]["polar"]["disk_bytes_per_token"]
    last = found["finish"]["sessions"][-1]
    return [
        ("small call, CPU", 0.5, "ms", small),
        ("call of 30,000 tokens, CPU", 2.5, "ms", large),
        ("mean turn of a 100-turn session, CPU", 2.5, "ms", growing),
        *_latencies(run),
        ("disk", 6, "bytes per unique token", disk | {"tokens mode, 1,000 turns": longest}),
        ("memory", 5, "KB per turn", _memory(found)),
        (f"finishing a session of {last['turns']} turns", 2, "ms", {"builder": last["polar"]["finish_ms"]}),
        ("CPU per turn late in a session over that early in it", 1, "times", _growth(run["linear"]["polar"])),
    ]


def _growth(numbers: Found) -> dict[str, float]:
    """The tenths of the longest session; the first has the start in it."""
    tenths = numbers["cpu_ms_by_tenth"]
    return {"the last tenth of 1,000 turns over the second": tenths[-1] / tenths[1]}


def _memory(found: Found) -> dict[str, float]:
    objects = max(found["forest"], key=lambda report: report["turns"])["memory_kb_per_turn"]
    process = found["side_by_side"]["linear"]["polar"]["memory_kb_per_turn"]
    return {"objects, without token arrays": objects, "whole process, 1,000 turns": process}


KINDS = (("first", "first_cpu_ms"), ("later", "cpu_ms"))


def _latencies(run: Found) -> list[tuple[str, float, str, dict[str, float]]]:
    """Over the engine's own median; the bars are for the window's length on top."""
    shown = {"window 0": ("polar", 0.0), "window 2 ms, less the window": ("polar-2ms", 2.0)}
    shown |= {"journal in memory": ("polar-tmpfs", 0.0)}
    direct = run["latency"]["direct"]["p50_ms"]
    rows = []
    for key, bar in (("p50_ms", 1.0), ("p99_ms", 3.0)):
        added = {what: run["latency"][name][key] - direct - window for what, (name, window) in shown.items()}
        rows.append((f"added latency, {key[:3]}, beside the commit window", bar, "ms", added))
    return rows


def _median(rounds: list[Found], key: str) -> float:
    values: list[float] = [numbers[key] for numbers in rounds if key in numbers]
    return statistics.median(values) if values else float("nan")
