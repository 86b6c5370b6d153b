# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Our gateway beside its peers, in one run: CPU per call, latency, and what is kept.

    python benchmarks/peers.py install            # once
    python benchmarks/side_by_side.py [--json] [--only NAME …] [--rounds N] [--scale X] …

All run at once, in front of one engine that costs almost nothing; what is measured is one after the other, in turns
(A B C A B C), so that other work on the machine falls on all. CPU is of the whole process tree, from /proc.

- `small`: conversations of 512 + 128 tokens, 8 at a time: the first call, and the second
- `large`: 30,000 + 512 tokens: the first call, and four more of the same conversation
- `growing`: a session of 100 turns: 8,000 tokens, then 150 sampled and 250 observed a turn
- `latency`: small second calls on one connection, the servers in turn
- `linear`: ours alone: a session of 1,000 turns
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import corpus
import scenarios
from conversations import Texts, script
from gateways import GATEWAYS, FailedError, Gateway
from machine import machine
from peers import PEERS
from servers import Bench, Server, running

LINEAR = ("polar",)
SIZES = (128, 150, 512)


@dataclass(frozen=True)
class Size:
    """How much is measured: repetitions, a factor for the number of calls, the turns of a session.

    After `minutes` of repetitions no further one begins.
    """

    rounds: int
    scale: float
    turns: int
    minutes: float

    def of(self, calls: int) -> int:
        return max(2, int(calls * self.scale))


async def measure(gateways: list[Gateway], size: Size) -> dict[str, Any]:
    text = corpus.load()
    with tempfile.TemporaryDirectory(prefix=f"polar-bench-{os.getpid()}-") as scratch:
        async with running(gateways, script(text, SIZES), text, Path(scratch)) as bench:
            texts = Texts(text)
            found: dict[str, Any] = {"machine": machine(), **asdict(size)}
            found["machine"]["fdatasync_ms"] = _quantiles(_syncs(Path(scratch) / "sync"))
            await _warm(bench, texts, size)
            found["latency"] = await _latency(bench, texts, size)
            found |= await _rounds(bench, texts, size)
            found["linear"] = await _linear(bench, texts, size)
            found["machine"]["load_after"] = os.getloadavg()
            return found


async def _warm(bench: Bench, texts: Texts, size: Size) -> None:
    for server in bench.servers:
        await bench.shape(512, 128, 64)
        await scenarios.calls(bench, server, texts, prompt=512, sessions=size.of(16), later=2)
        await bench.shape(scenarios.START, scenarios.SAMPLED, scenarios.OBSERVED)
        await scenarios.growing(bench, server, texts, turns=min(5, size.turns))


async def _rounds(bench: Bench, texts: Texts, size: Size) -> dict[str, Any]:
    """Scenario → gateway → one set of numbers per round."""
    found: dict[str, Any] = {"small": {}, "large": {}, "growing": {}}
    loads: list[float] = []
    until = time.monotonic() + 60 * size.minutes
    while len(loads) < size.rounds and (not loads or time.monotonic() < until):
        loads.append(round(os.getloadavg()[0], 2))
        for server in bench.servers:
            for name, numbers in (await _round(bench, server, texts, size)).items():
                found[name].setdefault(server.gateway.name, []).append(numbers)
    return {**found, "loads": loads, "rounds": len(loads)}


async def _round(bench: Bench, server: Server, texts: Texts, size: Size) -> dict[str, Any]:
    if server.gateway.slow:
        size = replace(size, scale=size.scale / 4, turns=max(1, size.turns // 2))
    await bench.shape(512, 128, 64)
    small = await scenarios.calls(bench, server, texts, prompt=512, sessions=size.of(80), later=1)
    await bench.shape(scenarios.START, scenarios.SAMPLED, scenarios.OBSERVED)
    growing = await scenarios.growing(bench, server, texts, turns=size.turns)
    await bench.shape(30_000, 512, scenarios.OBSERVED)
    large = await scenarios.calls(bench, server, texts, prompt=30_000, sessions=size.of(4), later=3)
    return {"small": small, "large": large, "growing": growing}


async def _latency(bench: Bench, texts: Texts, size: Size) -> dict[str, Any]:
    await bench.shape(512, 128, 64)
    waited = await scenarios.latency(bench, bench.servers, texts, conversations=size.of(100))
    return {name: _quantiles(values) for name, values in waited.items()}


def _quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "calls": len(ordered),
        "p50_ms": statistics.median(ordered),
        "p99_ms": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
    }


async def _linear(bench: Bench, texts: Texts, size: Size) -> dict[str, Any]:
    await bench.shape(scenarios.START, scenarios.SAMPLED, scenarios.OBSERVED)
    servers = [server for server in bench.servers if server.gateway.name in LINEAR]
    return {s.gateway.name: await scenarios.growing(bench, s, texts, turns=10 * size.turns) for s in servers}


def _syncs(path: Path) -> list[float]:
    """Milliseconds of a sync of one small append to this disk."""
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(200):
            started = time.perf_counter()
            file.write(b"x" * 1000)
            os.fdatasync(file.fileno())
            taken.append(1e3 * (time.perf_counter() - started))
    return taken


def table(found: dict[str, Any]) -> str:
    """CPU milliseconds, medians of the rounds; added latency over the engine itself."""
    lines = [f"{'':<20}{'small':>8}{'next':>8}{'30k':>8}{'next':>8}{'growing':>10}{'p50':>8}{'p99':>8}"]
    for name in found["small"]:
        row = [_median(found, scenario, name, key) for scenario, key in COLUMNS]
        row += [found["latency"][name]["p50_ms"], found["latency"][name]["p99_ms"]]
        lines.append(f"{name:<20}" + "".join(f"{value:>{width}.2f}" for value, width in zip(row, WIDTHS, strict=True)))
    return "\n".join(lines)


WIDTHS = (8, 8, 8, 8, 10, 8, 8)
COLUMNS = (
    ("small", "first_cpu_ms"),
    ("small", "cpu_ms"),
    ("large", "first_cpu_ms"),
    ("large", "cpu_ms"),
    ("growing", "cpu_ms"),
)


def _median(found: dict[str, Any], scenario: str, name: str, key: str) -> float:
    values: list[float] = [numbers.get(key, float("nan")) for numbers in found[scenario][name]]
    return statistics.median(values)


def chosen(names: list[str]) -> list[Gateway]:
    """Those that are named, the engine itself always; all if none is named."""
    if unknown := [name for name in names if name not in GATEWAYS]:
        raise SystemExit(f"benchmarks: no such gateway: {', '.join(unknown)}; there are {', '.join(GATEWAYS)}")
    wanted = [gateway for gateway in GATEWAYS.values() if not names or gateway.name in {"direct", *names}]
    missing = sorted({g.peer for g in wanted if g.peer and not PEERS[g.peer].installed})
    if missing:
        raise SystemExit(f"benchmarks: not installed: python benchmarks/peers.py install {' '.join(missing)}")
    return wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"some of: {', '.join(GATEWAYS)}")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions, in turn (%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer calls (%(default)s)")
    parser.add_argument(
        "--turns", type=int, default=100, help="of a growing session; ten times as many of a linear one"
    )
    parser.add_argument(
        "--minutes", type=float, default=8, help="begin no further repetition after these (%(default)s)"
    )
    arguments = parser.parse_args()
    size = Size(arguments.rounds, arguments.scale, arguments.turns, arguments.minutes)
    if size.rounds < 1 or size.scale <= 0 or size.turns < 1:
        parser.error("--rounds and --turns must be at least 1, --scale more than 0")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server outlives this process
    try:
        found = asyncio.run(measure(chosen(arguments.only), size))
    except FailedError as error:
        raise SystemExit(f"benchmarks: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    print(json.dumps(found, indent=1) if arguments.json else table(found))


if __name__ == "__main__":
    main()
