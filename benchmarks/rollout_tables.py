# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Markdown of the measurements of rollouts: stages, many sessions, many nodes, builders."""

from __future__ import annotations

from typing import Any

from writing import markdown, number

Found = dict[str, Any]

COMMANDS = {
    "stages": "stages",
    "many": "sessions at once",
    "nodes": "the model",
    "control_plane": "control plane",
    "builders": "builders",
}
PLANS = {
    "sequential": "sequential: one session after another",
    "pool": "a plain pool of {places} workers",
    "stages": "stages, no READY buffer",
    "ready": "and a READY buffer of half as many",
    "prewarm": "and evaluators' sandboxes made beforehand",
}
POLAR = {"updates": "1,185 → 218: 5.44", "wall_seconds": "189.5 → 35.2 min: 5.39"}
WORK = {
    "traces": "traces",
    "updates": "updates",
    "trained_tokens": "trained tokens",
    "input_tokens": "tokens that one pass reads",
    "padded_tokens": "padded tokens",
    "cpu_seconds": "CPU seconds of the trainer",
    "wall_seconds": "wall seconds of the trainer",
}


def all_tables(found: Found) -> dict[str, str]:
    return {
        "rollouts": machines(found),
        "stages": stages(found["stages"]),
        "many": many(found["many"]),
        "nodes": nodes(found["nodes"], found["control_plane"]),
        "builders": builders(found["builders"]),
    }


def machines(found: Found) -> str:
    rows = []
    for name, title in COMMANDS.items():
        here = found[name]["machine"]
        loads = ", ".join(number(here[key][0]) for key in ("load_before", "load_after"))
        on = f"{here['cores']} cores, {here['cpu']}"
        rows.append([title, on, f"{here['commit']}, {here['date']}", loads, number(here["seconds"] / 60)])
    return markdown(["", "machine", "commit, date", "load average before, after", "minutes"], rows)


def stages(run: Found) -> str:
    pool = next(row for row in run["plans"] if row["plan"] == "pool")
    rows = [
        [
            PLANS[row["plan"]].format(places=run["places"]),
            number(row["sessions_per_second"]),
            _percent(row["busy"]),
            f"{number(row['model_sessions_per_second'])}, {_percent(row['model_busy'])}",
            number(row["sessions_per_second"] / pool["sessions_per_second"]),
        ]
        for row in run["plans"]
    ]
    head = ["plan", "sessions a second", "engine's places taken", "the model says", "times a plain pool"]
    return f"{_workload(run, pool)}\n\n{markdown(head, rows)}\n\n{_beside(run['plans'])}"


def _workload(run: Found, pool: Found) -> str:
    costs = run["costs"]
    seconds = {"a sandbox": "sandbox", "a generation": "generation", "a tool": "tool", "a test suite": "evaluation"}
    medians = ", ".join(f"{costs[key]['median']:g} s for {what}" for what, key in seconds.items())
    return (
        f"{pool['sessions']} sessions of {number(pool['calls'] / pool['sessions'])} model calls, an engine with"
        f" {run['places']} places, at most {run['places']} sessions running. Medians: {medians}, all of it times"
        f" {costs['scale']:g}."
    )


def _beside(plans: list[Found]) -> str:
    off = [100 * abs(row["model_sessions_per_second"] / row["sessions_per_second"] - 1) for row in plans]
    cpu = [row["cpu_ms_per_session"] for row in plans]
    return (
        f"A session cost {number(min(cpu))} to {number(max(cpu))} ms of CPU. The model's sessions a second are"
        f" {number(min(off))} to {number(max(off))} % off those that were measured."
    )


def many(run: Found) -> str:
    (row,) = run["plans"]
    return (
        f"{row['sessions']:,} sessions at once, of {row['calls']:,} model calls, all times multiplied by"
        f" {run['costs']['scale']:g}: {number(row['cpu_ms_per_session'])} ms of CPU each,"
        f" {number(row['seconds'])} s to the end of the last one, {number(row['peak_mb'])} MB of memory at the most."
    )


def nodes(run: Found, control: Found) -> str:
    head = ["nodes", "sessions a second", "engines' places taken", "control plane busy", "simulated seconds"]
    rows = [
        [
            f"{row['nodes']:,}",
            number(row["sessions_per_second"]),
            _percent(row["busy"]),
            _percent(row["control_busy"]),
            number(row["seconds"]),
        ]
        for row in run["nodes"]
    ]
    one = run["nodes"][0]
    fed = 1e3 / run["control_ms"] / (one["sessions_per_second"] / one["nodes"])
    return (
        f"{markdown(head, rows)}\n\n{run['places']} places a node, and {run['control_ms']:g} ms of one CPU of the"
        f" control plane for a session: one service feeds about {round(fed, -1):,.0f} such nodes. Measured here:"
        f" {number(control['cpu_ms_per_session'])} ms and {number(control['sessions_per_second'])} sessions a second"
        f" ({control['sessions']:,} sessions, {control['nodes']} nodes that take no time, SQLite)."
    )


def builders(run: Found) -> str:
    """A column for each workload; what `per_request` takes, what `prefix_merging` takes, and the ratio."""
    loads = run["workloads"]
    head = ["", *(f"median of {one['turns']} turns" for one in loads), "Polar's, as published"]
    rows = [["sessions, model calls", *(f"{one['sessions']}, {one['calls']:,}" for one in loads), ""]]
    for key, what in WORK.items():
        rows.append([what, *(_change(one, key) for one in loads), POLAR.get(key, "")])
    return markdown(head, rows) + f"\n\nAn update for every {run['sequences']} traces."


def _change(workload: Found, key: str) -> str:
    before, after = (work[key] for work in workload["builders"])
    shown = [f"{value:,}" if isinstance(value, int) else number(value) for value in (before, after)]
    ratio = number(workload["ratios"][key]) if key in workload["ratios"] else "-"
    return f"{shown[0]} → {shown[1]}: {ratio}"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"
