# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The reward curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw_curve(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """`lines` are those of metrics.jsonl: the mean reward of each step, and the held-out reward where measured."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    steps = [line for line in lines if line["kind"] == "step"]
    held_out = [line for line in lines if line["kind"] == "evaluation"]
    axes.plot([line["step"] for line in steps], [line["reward"] for line in steps], marker=".", label="training tasks")
    axes.errorbar(
        [line["step"] for line in held_out],
        [line["reward"] for line in held_out],
        yerr=[line["standard_error"] for line in held_out],
        fmt="o",
        capsize=4,
        label="held-out tasks",
    )
    for line in held_out:
        axes.annotate(f"{line['reward']:.2f}", (line["step"], line["reward"]), (6, -12), textcoords="offset points")
    axes.set(xlabel="step", ylabel="mean reward")
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), max(1.05, axes.get_ylim()[1]))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)
