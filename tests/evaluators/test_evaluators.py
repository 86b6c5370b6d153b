# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from nemo_gym_polar.evaluators.base import Evaluation, EvaluatorError, Score
from nemo_gym_polar.evaluators.registry import make_evaluator
from nemo_gym_polar.runtimes.base import Runtime
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    runtime = BubblewrapRuntime(gateway=None)
    await runtime.start()
    await runtime.write("/workspace/answer.txt", b"42\n")
    yield runtime
    await runtime.stop()


async def evaluate(runtime: Runtime, seconds_left: float = 10.0, **config: Any) -> Score:
    return await make_evaluator("command", config).evaluate(Evaluation(runtime, (), "completed", seconds_left))


@pytest.mark.parametrize(("command", "reward"), [("grep -qx 42 answer.txt", 1.0), ("grep -q 43 answer.txt", 0.0)])
async def test_exit_code(runtime: Runtime, command: str, reward: float) -> None:
    assert (await evaluate(runtime, command=command)).reward == reward


async def test_detail_says_what_the_command_said(runtime: Runtime) -> None:
    score = await evaluate(runtime, command="echo out; echo err >&2; exit 7")
    assert {**score.detail, "seconds": 0} == {"exit_code": 7, "seconds": 0, "stdout": "out\n", "stderr": "err\n"}


@pytest.mark.parametrize(("printed", "reward"), [("0.25", 0.25), ("noise\n-1e2", -100.0), ("  3  \n\n", 3.0)])
async def test_a_number_on_the_last_line(runtime: Runtime, printed: str, reward: float) -> None:
    score = await evaluate(runtime, command='printf %s "$SAID"; exit 1', score="stdout", env={"SAID": printed})
    assert score.reward == reward


@pytest.mark.parametrize("printed", ["", "no", "nan", "inf", "1 2"])
async def test_no_number_is_an_error(runtime: Runtime, printed: str) -> None:
    with pytest.raises(EvaluatorError, match="finite number"):
        await evaluate(runtime, command='printf %s "$SAID"', score="stdout", env={"SAID": printed})


async def test_evaluator_files_replace_what_the_harness_left(runtime: Runtime) -> None:
    await runtime.write("/workspace/test.sh", b"exit 0")
    score = await evaluate(runtime, command="bash test.sh", files={"/workspace/test.sh": "exit 1", "new.txt": "x"})
    assert score.reward == 0.0
    assert await runtime.read("/workspace/new.txt") == b"x"


@pytest.mark.parametrize(("own", "left"), [(0.2, 10.0), (60.0, 0.2)])
async def test_time_is_bounded_by_its_own_limit_and_by_the_session(runtime: Runtime, own: float, left: float) -> None:
    with pytest.raises(EvaluatorError, match="took longer"):
        await evaluate(runtime, command="sleep 60", timeout_seconds=own, seconds_left=left)


@pytest.mark.parametrize(("status", "reward"), [("completed", 1.0), ("failed", 0.0), ("timeout", 0.0)])
async def test_session_completed(runtime: Runtime, status: str, reward: float) -> None:
    score = await make_evaluator("session_completed").evaluate(Evaluation(runtime, (), status, 1.0))
    assert score.reward == reward


@pytest.mark.parametrize(
    ("strategy", "config", "message"),
    [
        (
            "guess",
            {},
            "evaluator.strategy='guess' is unknown: choose one of command, session_completed, test_on_output",
        ),
        ("command", {}, "evaluator.config.command"),
        ("command", {"command": "x", "scoer": 1}, "evaluator.config.scoer=1"),
        ("command", {"command": "x", "timeout_seconds": 0}, "evaluator.config.timeout_seconds=0"),
        ("session_completed", {"x": 1}, "evaluator.config.x=1"),
    ],
)
def test_bad_configuration_is_named(strategy: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        make_evaluator(strategy, config)
