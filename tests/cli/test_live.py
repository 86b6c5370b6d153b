# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The terminal's view of a run, and the table at its end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nemo_gym_polar.cli.live import LiveProgress, sparkline
from nemo_gym_polar.cli.run import EXIT_CODES, result
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def step(number: int, reward: float) -> StepReport:
    return StepReport(
        step=number,
        reward=reward,
        reward_deviation=0.5,
        sessions=64,
        turns=2.0,
        groups=8,
        zero_variance_groups=1,
        first_prompt_mismatches=0,
        statuses={"COMPLETED": 64},
        excluded={},
        trained_tokens=2000,
        untrained={},
        updates=2,
        lr=5e-4,
        gradient_norm=0.7,
        rollout_seconds=12.0,
        train_seconds=3.0,
        push_seconds=0.1,
        values={},
    )


def test_lines_stay_and_bars_move() -> None:
    console = terminal()
    with LiveProgress(console) as progress:
        progress.say("warm start [1/2]")
        progress.sessions({Stage.RUNNING: 4, Stage.QUEUED: 0}, done=12, total=64)
        progress.stepped(step(1, 0.25), steps=20)
        progress.evaluated(Evaluation("before", 0, 0.125, 0.04, 32, 64, 15.0, {"COMPLETED": 64}, 900))
    shown = written(console)
    assert "warm start [1/2]" in shown
    assert "step 1/20  reward 0.250" in shown
    assert "held-out reward before: 0.125" in shown
    assert "12/64" in shown
    assert "running 4" in shown
    assert "queued 0" not in shown


@pytest.mark.parametrize(
    ("rewards", "bars"), [([], ""), ([0.0, 0.5, 1.0], "▁▅█"), ([-1.0, 2.0], "▁█")], ids=["none", "range", "outside"]
)
def test_sparkline(rewards: list[float], bars: str) -> None:
    assert sparkline(rewards) == bars


def test_result_shows_before_and_after() -> None:
    console = terminal()
    summary = Summary("runs/a", seed=3, reward_before=0.125, reward_after=0.953, steps=20, sessions=1280, seconds=321.4)
    console.print(result(summary))
    for words in ("seed 3", "0.125", "0.953", "1280", "321"):
        assert words in written(console)


def test_what_was_not_measured_is_not_a_number() -> None:
    console = terminal()
    console.print(result(Summary("runs/a", seed=0)))
    assert written(console).count("not measured") == 2


def test_only_a_completed_run_succeeds() -> None:
    assert [status for status, code in EXIT_CODES.items() if code == 0] == ["completed"]
