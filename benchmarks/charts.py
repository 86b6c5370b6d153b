# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, written by hand: the same measurements give the same bytes, on any machine."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from gateways import GATEWAYS

Found = dict[str, Any]
WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 260, 40, 40
COLOURS = ("#0b6e4f", "#1f9e78", "#5bc0a0", "#9ad7c3", "#888888", "#555555", "#e07a1f", "#b5179e", "#7209b7", "#3a0ca3",
           "#d00000", "#e85d5d", "#f4a3a3", "#c9a400")  # fmt: skip
STYLE = "font-family='sans-serif' font-size='12' fill='#222'"


def all_charts(found: Found) -> dict[str, str]:
    return {"growing.svg": growing(found["side_by_side"])}


def growing(run: Found) -> str:
    """CPU per turn over a session of 100 turns, on a logarithmic scale."""
    lines = {name: _tenths(rounds) for name, rounds in run["growing"].items() if name != "direct"}
    values = [value for line in lines.values() for value in line]
    ticks = _ticks(min(values), max(values))
    low, high = ticks[0], ticks[-1]
    parts = [f"<text x='{LEFT}' y='20' {STYLE} font-weight='bold'>CPU ms per turn, by turn of a session</text>"]
    parts += _grid(ticks)
    ordered = sorted(lines.items(), key=lambda item: -item[1][-1])
    for place, (name, line) in enumerate(ordered):
        parts += _line(name, line, low, high, TOP + 10 + 22 * place)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>"
    return "\n".join([head, f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>", *parts, "</svg>"]) + "\n"


def _tenths(rounds: list[Found]) -> list[float]:
    """The median of the rounds at each tenth of the session; never 0, for the logarithm."""
    columns = zip(*(numbers["cpu_ms_by_tenth"] for numbers in rounds), strict=True)
    return [max(0.01, statistics.median(column)) for column in columns]


def _ticks(least: float, most: float) -> list[float]:
    """1, 3, 10, 30, … from below the least to above the most."""
    found = [base * 10.0**power for power in range(-3, 5) for base in (1, 3)]
    start = max(at for at, tick in enumerate(found) if tick <= max(least, found[0]))
    end = min(at for at, tick in enumerate(found) if tick >= min(most, found[-1]))
    return found[start : max(end, start + 1) + 1]


def _grid(ticks: list[float]) -> Iterator[str]:
    for value in ticks:
        y = _y(value, ticks[0], ticks[-1])
        yield f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>"
        yield f"<text x='{LEFT - 8}' y='{y + 4:.1f}' text-anchor='end' {STYLE}>{value:g}</text>"
    for turn in (0, 20, 40, 60, 80, 100):
        x = _x(turn)
        yield f"<text x='{x:.1f}' y='{HEIGHT - BOTTOM + 20}' text-anchor='middle' {STYLE}>{turn}</text>"


def _line(name: str, line: list[float], low: float, high: float, label: float) -> Iterator[str]:
    colour = COLOURS[(list(GATEWAYS).index(name) - 1) % len(COLOURS)]
    width = 3 if name.startswith("polar") else 1.5
    step = 100 / len(line)
    points = " ".join(f"{_x((at + 0.5) * step):.1f},{_y(value, low, high):.1f}" for at, value in enumerate(line))
    yield f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='{width}'/>"
    x = WIDTH - RIGHT + 12
    yield f"<line x1='{x}' x2='{x + 16}' y1='{label - 4}' y2='{label - 4}' stroke='{colour}' stroke-width='{width}'/>"
    yield f"<text x='{x + 22}' y='{label}' {STYLE}>{GATEWAYS[name].title}</text>"


def _x(turn: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * turn / 100


def _y(value: float, low: float, high: float) -> float:
    share = math.log10(value / low) / math.log10(high / low)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
