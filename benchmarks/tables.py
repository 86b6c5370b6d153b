# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Markdown tables of measurements. Figures are medians of the rounds, with the least and the most in brackets."""

from __future__ import annotations

import statistics
from typing import Any

import bars
import rollout_tables
from gateways import GATEWAYS
from writing import markdown, number

Found = dict[str, Any]
OURS = "polar"


def all_tables(found: Found) -> dict[str, str]:
    return {
        "machine": machine(found["side_by_side"]),
        "summary": summary(found["side_by_side"]),
        "bars": bars.table(found) + "\n\n" + bars.elsewhere(found["side_by_side"]),
        "calls": calls(found["side_by_side"]),
        "growing": growing(found["side_by_side"]),
        "latency": latency(found["side_by_side"]),
        "kept": kept(found["side_by_side"]),
        "linear": linear(found["side_by_side"]),
        "finish": finish(found["finish"]),
        "forest": forest(found["forest"]),
        "profile": profile(found),
        **rollout_tables.all_tables(found),
    }


def over_rounds(rounds: list[Found], key: str) -> list[float]:
    return [numbers[key] for numbers in rounds if key in numbers]


def spread(rounds: list[Found], key: str) -> str:
    values = over_rounds(rounds, key)
    if not values:
        return "-"
    return f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})"


def median(rounds: list[Found], key: str) -> float:
    values = over_rounds(rounds, key)
    return statistics.median(values) if values else float("nan")


def title(name: str) -> str:
    shown = GATEWAYS[name].title
    return f"**{shown}**" if name.startswith(OURS) else shown


def machine(run: Found) -> str:
    here = run["machine"]
    sync = here["fdatasync_ms"]
    loads = ", ".join(number(load) for load in run["loads"])
    rows = [
        ("machine", f"{here['cores']} cores, {here['cpu']}, shared with other work"),
        (
            "load average",
            f"{number(here['load_before'][0])} before, {loads} at each round, {number(here['load_after'][0])} after",
        ),
        ("a sync of 1 KB to this disk", f"{number(sync['p50_ms'])} ms (p50), {number(sync['p99_ms'])} ms (p99)"),
        ("Python", f"{here['python']}; NeMo Gym on 3.13"),
        ("commit, date", f"{here['commit']}, {here['date']}"),
        ("rounds", f"{run['rounds']}, with `--scale {run['scale']:g} --turns {run['turns']}`"),
    ]
    return markdown(("", ""), rows)


RECORDERS = ("agentcore", "rllm", "rllm-sqlite", "agentlightning", "nemo-gym", "nemo-gym-delta")


def summary(run: Found) -> str:
    """Ours, the peer that syncs to disk too, and the least of all peers that record."""
    shown = {"ours, tokens mode": [OURS], "ours, chat mode": ["polar-chat"], "nemo-gym, capture": ["nemo-gym"]}
    shown["the best peer that records"] = list(RECORDERS)
    rows = []
    for what, scenario, key in SUMMARY:
        values = [min((median(run[scenario][name], key), name) for name in names) for names in shown.values()]
        (best, name), least = values[-1], min(value for value, _ in values)
        cells = [f"**{number(value)}**" if value == least else number(value) for value, _ in values]
        rows.append([what, *cells[:-1], f"{cells[-1]} ({GATEWAYS[name].title})", f"{number(best / values[0][0])}"])
    return markdown(["CPU ms", *shown, "best peer over ours, tokens mode"], rows)


SUMMARY = (
    ("512 tokens, first call", "small", "first_cpu_ms"),
    ("512 tokens, second call", "small", "cpu_ms"),
    ("30,000 tokens, first call", "large", "first_cpu_ms"),
    ("30,000 tokens, further call", "large", "cpu_ms"),
    ("mean turn of a session of 100", "growing", "cpu_ms_100"),
)


def calls(run: Found) -> str:
    head = [
        "CPU ms per call",
        "512: first",
        "512: second",
        "30,000: first",
        "30,000: further",
        "times ours (second, further)",
    ]
    rows = []
    for name, small in run["small"].items():
        large = run["large"][name]
        times = [_ratio(run, scenario, name) for scenario in ("small", "large")]
        cells = [
            spread(small, "first_cpu_ms"),
            spread(small, "cpu_ms"),
            spread(large, "first_cpu_ms"),
            spread(large, "cpu_ms"),
        ]
        rows.append([title(name), *cells, ", ".join(number(value) for value in times)])
    return markdown(head, rows)


def _ratio(run: Found, scenario: str, name: str, key: str = "cpu_ms") -> float:
    return median(run[scenario][name], key) / median(run[scenario][OURS], key)


def growing(run: Found) -> str:
    head = [
        "CPU ms per turn, mean",
        "20 turns",
        "50 turns",
        "100 turns",
        "times ours, 100 turns",
        "last five turns, p50 of the wait, ms",
    ]
    rows = []
    for name, rounds in run["growing"].items():
        cells = [spread(rounds, f"cpu_ms_{turns}") for turns in (20, 50, 100)]
        ratio = _ratio(run, "growing", name, "cpu_ms_100")
        rows.append([title(name), *cells, number(ratio), number(median(rounds, "wall_ms_last"))])
    return markdown(head, rows)


def latency(run: Found) -> str:
    head = ["ms, one connection", "p50", "p99", "added p50", "p99 over the engine's p50", "calls"]
    direct = run["latency"]["direct"]["p50_ms"]
    rows = []
    for name, value in run["latency"].items():
        added = [value[key] - direct for key in ("p50_ms", "p99_ms")]
        cells = [number(item) for item in (value["p50_ms"], value["p99_ms"], *added)]
        rows.append([title(name), *cells, str(value["calls"])])
    return markdown(head, rows)


def kept(run: Found) -> str:
    """Memory is that of the process: what a round frees the next one uses, so the round that grew most counts."""
    head = ["", "what is kept", "disk, bytes per unique token", "memory, KB per turn"]
    rows = []
    for name, rounds in run["growing"].items():
        if name == "direct":
            continue
        disk = median(rounds, "disk_bytes_per_token")
        memory = max(over_rounds(rounds, "memory_kb_per_turn"))
        rows.append([title(name), GATEWAYS[name].keeps, number(disk) if disk else "-", number(max(0.0, memory))])
    return markdown(head, rows)


def linear(run: Found) -> str:
    (name,) = run["linear"]
    numbers = run["linear"][name]
    tenths = numbers["cpu_ms_by_tenth"]
    turns = max(int(key.removeprefix("cpu_ms_")) for key in numbers if key.removeprefix("cpu_ms_").isdigit())
    step = turns // len(tenths)
    head = ["turns", *(f"{at * step + 1} to {(at + 1) * step}" for at in range(len(tenths)))]
    row = ["CPU ms per turn", *(number(value) for value in tenths)]
    sizes = f"{number(numbers['disk_bytes_per_token'])} bytes on disk per unique token, "
    sizes += f"{number(numbers['memory_kb_per_turn'])} KB of memory per turn, "
    sizes += f"{number(numbers['close_cpu_ms'])} ms of CPU to finish the session and write its traces."
    return markdown(head, [row]) + "\n\n" + sizes


def finish(run: Found) -> str:
    names = [name for name, value in run["sessions"][0].items() if isinstance(value, dict)]
    head = ["turns", "tokens", *(f"{'**ours**' if name == OURS else name}, ms" for name in names)]
    rows = []
    for row in run["sessions"]:
        cells = [number(row[name]["finish_ms"]) for name in names]
        rows.append([str(row["turns"]), f"{row['tokens']:,}", *cells])
    return markdown(head, rows)


def forest(reports: list[Found]) -> str:
    keys = {
        "match_ms": "match, ms a turn", "append_ms": "append, ms a turn", "encode_ms": "encode, ms a turn",
        "finish_ms": "finish, ms", "bytes_per_token": "bytes per token", "memory_kb_per_turn": "KB of objects per turn",
    }  # fmt: skip
    rows = [
        [str(report["turns"]), f"{report['tokens']:,}", *(number(report[key]) for key in keys)] for report in reports
    ]
    return markdown(["turns", "tokens", *keys.values()], rows)


def profile(found: Found) -> str:
    columns = {"small": "512, first and second", "large": "30,000, one first and five further", "growing": "100 turns"}
    parts = {name: found[f"profile_{name}"]["parts"] for name in columns}
    order = sorted(
        {part for column in parts.values() for part in column}, key=lambda part: -parts["growing"].get(part, 0)
    )
    rows = [[part, *(number(parts[name].get(part, 0.0)) for name in columns)] for part in order]
    rows.append(["together", *(number(sum(parts[name].values())) for name in columns)])
    return markdown(["CPU ms per call", *columns.values()], rows)
