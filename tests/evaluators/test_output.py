# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests a command says have passed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from nemo_gym_polar.evaluators.base import Evaluation, EvaluatorError, EvaluatorTimeoutError, Score
from nemo_gym_polar.evaluators.output import verdicts
from nemo_gym_polar.evaluators.registry import make_evaluator
from nemo_gym_polar.runtimes.base import Runtime
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime

SUITE = """
for name in one two; do
  if [ -e $name ]; then echo "PASSED tests/$name"; else echo "FAILED tests/$name - no file $name"; fi
done
echo noise; exit 3
"""
BOTH = {"tests/one": "PASSED", "tests/two": "PASSED"}
START = (
    'git init -q . && git config user.name a && git config user.email a@b && printf %s "$SUITE" > suite.sh'
    " && touch one && git add -A && git commit -qm start"
)


@pytest.fixture
async def sandboxes() -> AsyncIterator[tuple[Runtime, Runtime]]:
    """Two with the same repository; the harness worked in the first."""
    made = (BubblewrapRuntime(gateway=None), BubblewrapRuntime(gateway=None))
    for runtime in made:
        await runtime.start()
        ended = await runtime.run(["bash", "-c", START], env={"SUITE": SUITE}, timeout=20)
        assert ended.code == 0, ended.stderr
    yield made
    for runtime in made:
        await runtime.stop()


async def evaluate(runtime: Runtime, harness: Runtime | None = None, seconds: float = 20.0, **config: Any) -> Score:
    config = {"test_command": "bash suite.sh", "expected_output_json": BOTH, **config}
    evaluation = Evaluation(runtime, (), "completed", seconds, harness_runtime=harness)
    return await make_evaluator("test_on_output", config).evaluate(evaluation)


async def run(runtime: Runtime, command: str) -> None:
    assert (await runtime.run(["bash", "-c", command], timeout=20)).code == 0


async def test_every_verdict_must_be_the_expected_one(sandboxes: tuple[Runtime, Runtime]) -> None:
    runtime, _ = sandboxes
    before = await evaluate(runtime)
    assert (before.reward, before.detail["wrong_tests"], before.detail["tests"]) == (0.0, ["tests/two"], 2)
    assert before.detail["exit_code"] == 3
    await run(runtime, "touch two")
    assert (await evaluate(runtime)).reward == 1.0
    assert (await evaluate(runtime, expected_output_json=json.dumps(BOTH))).reward == 1.0
    assert (await evaluate(runtime, expected_output_json={"tests/one": "PASSED"})).detail["wrong"] == 1
    assert (await evaluate(runtime, expected_output_json={**BOTH, "tests/three": "PASSED"})).detail["wrong"] == 1


async def test_into_a_fresh_sandbox_goes_the_patch(sandboxes: tuple[Runtime, Runtime]) -> None:
    harness, fresh = sandboxes
    await run(harness, "echo x > two; echo 'echo PASSED tests/one; echo PASSED tests/two' > suite.sh; rm one")
    honest = await evaluate(fresh, harness, exclude_patterns=["suite.sh", "one"])
    assert (honest.reward, honest.detail["patch_bytes"] > 0) == (1.0, True)


async def test_a_patch_that_takes_the_tests_along(sandboxes: tuple[Runtime, Runtime]) -> None:
    harness, fresh = sandboxes
    await run(harness, "echo 'echo PASSED tests/one; echo PASSED tests/two' > suite.sh")
    assert (await evaluate(fresh, harness)).reward == 1.0  # nothing was excluded


async def test_an_own_patch_command(sandboxes: tuple[Runtime, Runtime]) -> None:
    harness, fresh = sandboxes
    await run(harness, "echo x > two; git add two; git commit -qm two")
    score = await evaluate(fresh, harness, patch_command="git format-patch -1 --stdout")
    assert score.reward == 1.0
    with pytest.raises(EvaluatorError, match="git apply in /workspace"):
        await evaluate(fresh, harness, patch_command="echo this is no patch")
    with pytest.raises(EvaluatorError, match="patch in /workspace: why"):
        await evaluate(fresh, harness, patch_command="echo why >&2; exit 1")
    with pytest.raises(EvaluatorTimeoutError, match="patch in /workspace took longer"):
        await evaluate(fresh, harness, patch_command="sleep 60", apply_timeout=0.2)


async def test_it_runs_where_it_is_told_and_not_for_ever(sandboxes: tuple[Runtime, Runtime]) -> None:
    runtime, _ = sandboxes
    await run(runtime, "mkdir deep")
    deep = await evaluate(runtime, test_command="echo PASSED $(basename $PWD)", expected_output_json={"deep": "PASSED"},
                          repo_dir="deep")  # fmt: skip
    assert deep.reward == 1.0
    with pytest.raises(EvaluatorTimeoutError, match="test_command took longer than 0 s"):
        await evaluate(runtime, test_command="sleep 60", test_timeout=0.3)
    with pytest.raises(EvaluatorTimeoutError, match="took longer"):
        await evaluate(runtime, seconds=0.3, test_command="sleep 60")


async def test_more_output_than_a_tail_holds(sandboxes: tuple[Runtime, Runtime]) -> None:
    noisy = "echo PASSED first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo PASSED last"
    score = await evaluate(
        sandboxes[0], test_command=noisy, expected_output_json=dict.fromkeys(("first", "last"), "PASSED")
    )
    assert score.reward == 1.0


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("", {}),
        ("PASSED a\nFAILED b - AssertionError: x - y\n", {"a": "PASSED", "b": "FAILED"}),
        ("PASSED a\nFAILED a\nPASSED a", {"a": "FAILED"}),
        ("xPASSED a\n PASSED b\nPASSED\nPASSEDc", {}),
        ("PASSED t.py::test[a b-c]\r\n", {"t.py::test[a b-c]": "PASSED"}),
    ],
)
def test_lines(output: str, found: dict[str, str]) -> None:
    assert verdicts(output) == found


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"test_command": ""}, "test_command"),
        ({"expected_output_json": {}}, "expected_output_json"),
        ({"expected_output_json": {"a": "OK"}}, "expected_output_json"),
        ({"expected_output_json": "{"}, "expected_output_json"),
        ({"test_timeout": 0}, "test_timeout"),
        ({"patchcommand": "x"}, "patchcommand"),
    ],
)
def test_bad_configuration_is_named(change: dict[str, Any], field: str) -> None:
    config = {"test_command": "x", "expected_output_json": BOTH, **change}
    with pytest.raises(EvaluatorError, match=f"evaluator.config.{field}"):
        make_evaluator("test_on_output", config)
