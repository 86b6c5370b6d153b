# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs: engine process, gateway, rollouts, trainer, files; interrupted, resumed, and with the engine killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from nemo_gym_polar.export.jsonl import read_traces
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.model_dir import load_model
from nemo_gym_polar.training.run import train
from tests.support.runs import Heard, make_policy, make_settings, make_tasks

pytestmark = pytest.mark.filterwarnings("ignore::nemo_gym_polar.runtimes.local.NoIsolationWarning")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("policy"))


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def engines() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "nemo_gym_polar.policy.server" in one.cmdline()]


async def test_a_run_leaves_everything_that_it_promises(policy: Path, tmp_path: Path) -> None:
    heard, run = Heard(), tmp_path / "run"
    summary = await train(make_settings(policy, tmp_path), heard)

    assert (summary.status, summary.steps, summary.sessions, summary.evaluation_sessions) == ("completed", 2, 16, 8)
    written = json.loads((run / "summary.json").read_text())
    assert written["reward_before"] == heard.evaluations[0].reward
    assert written["reward_after"] == heard.evaluations[1].reward
    assert written["trained_tokens"] == sum(step.trained_tokens for step in heard.steps)
    assert written["seed"] == 0 and written["seconds"] > 0
    assert set(written["dropped_tokens_by_cause"]) <= {"evaluation", "zero_advantage"}
    assert written["logprob_error_max"] < 1e-4
    assert [(line["kind"], line["step"]) for line in lines(run)] == [
        ("evaluation", 0),
        ("step", 1),
        ("step", 2),
        ("evaluation", 2),
    ]
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((run / "tb").iterdir())
    assert "steps: 2" in (run / "config.yaml").read_text()
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-1", "step-2"]
    assert not engines()

    versions = {span.version for trace in read_traces(run / "traces" / "step-2.jsonl") for span in trace.versions}
    assert versions <= {"1"}
    trained = load_model(run / "policy", device=torch.device("cpu"), attention="eager").state_dict()
    saved = load_file(run / "checkpoints" / "step-2" / "policy" / "model.safetensors")
    assert all(torch.equal(trained[name], saved[name]) for name in saved)
    assert heard.batches[-1][1] == 4
    assert max(done for done, _ in heard.batches) <= 8


async def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(policy: Path, tmp_path: Path) -> None:
    heard, run = Heard(), tmp_path / "run"

    def interrupt(stages: Mapping[Stage, int]) -> None:
        if heard.steps and stages[Stage.RUNNING]:
            heard.on_sessions = None
            os.kill(os.getpid(), signal.SIGINT)

    heard.on_sessions = interrupt
    summary = await train(make_settings(policy, tmp_path, trainer__steps=3), heard)
    assert (summary.status, summary.steps) == ("interrupted", 1)
    assert json.loads((run / "summary.json").read_text())["status"] == "interrupted"
    assert "stopping" in heard.said[-1]
    assert not engines()
    assert all(recover(journal).damage is None for journal in (run / "journals").glob("*.journal"))

    # As if the process had died in the middle of a line.
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "step", "st')
    again = Heard()
    resumed = await train(make_settings(policy, tmp_path, trainer__steps=3, resume=True), again)
    assert (resumed.status, resumed.steps, resumed.sessions) == ("completed", 3, 24)
    assert [step.step for step in again.steps] == [2, 3]
    assert [one.when for one in again.evaluations] == ["after"]
    assert resumed.reward_before == summary.reward_before
    assert resumed.seconds > summary.seconds
    assert [line["step"] for line in lines(run) if line["kind"] == "step"] == [1, 2, 3]


async def test_a_dead_engine_ends_the_run_in_one_line(policy: Path, tmp_path: Path) -> None:
    heard = Heard()

    def kill(stages: Mapping[Stage, int]) -> None:
        if stages[Stage.RUNNING]:
            heard.on_sessions = None
            engines()[0].kill()

    heard.on_sessions = kill
    with pytest.raises(TrainingError, match=r"the engine ended with status -9; its last words are in .*engine\.log"):
        await train(make_settings(policy, tmp_path), heard)
    written = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert written["status"] == "failed"
    assert "the engine ended" in written["error"]


async def test_at_learning_rate_zero_the_policy_stays(policy: Path, tmp_path: Path) -> None:
    settings = make_settings(policy, tmp_path, trainer__optimizer={"lr": 0.0}, env__heldout=0)
    summary = await train(settings, Heard())
    assert summary.status == "completed" and summary.reward_after is None
    before, after = (load_file(place / "model.safetensors") for place in (policy, tmp_path / "run" / "policy"))
    assert all(torch.equal(before[name], after[name]) for name in before)


async def test_a_harness_that_never_calls_the_model_is_told(policy: Path, tmp_path: Path) -> None:
    settings = make_settings(policy, tmp_path, harness={"harness": "shell", "settings": {"command": "true"}})
    with pytest.raises(TrainingError, match="none of 4 sessions sampled a token"):
        await train(settings, Heard())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"env__tasks": "nothing"}, "env.tasks: .*'nothing' is neither a bundled task set"),
        ({"resume": True}, "there is no checkpoint"),
        ({"harness": {"harness": "emacs"}}, "'emacs' is unknown"),
        ({"policy__model": "nowhere"}, "nowhere/config.json is missing"),
        ({"engine__renderer": "klingon"}, "engine.renderer"),
        ({"engine__url": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({"evaluator": {"strategy": "tarot"}}, "'tarot' is unknown"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_what_is_wrong_is_said_in_one_line(
    policy: Path, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(TrainingError, match=message) as caught:
        await train(make_settings(policy, tmp_path, **changed), Heard())
    assert "\n" not in str(caught.value)
    assert not engines()


async def test_a_second_run_of_the_same_name_is_refused(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    with pytest.raises(TrainingError, match="holds a run already; choose another name, or resume="):
        await train(make_settings(policy, tmp_path), Heard())


async def test_tasks_without_any_to_train_on_are_refused(policy: Path, tmp_path: Path) -> None:
    tasks = make_tasks(tmp_path / "tasks.jsonl", train=0)
    with pytest.raises(TrainingError, match="no task of the split train"):
        await train(make_settings(policy, tmp_path, env__tasks=str(tasks)), Heard())


async def test_cancelling_the_run_frees_everything(policy: Path, tmp_path: Path) -> None:
    heard = Heard()
    running = asyncio.Event()
    heard.on_sessions = lambda stages: running.set() if stages[Stage.RUNNING] else None
    task = asyncio.create_task(train(make_settings(policy, tmp_path), heard))
    await asyncio.wait_for(running.wait(), 120)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not engines()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "interrupted"


async def test_ctrl_c_while_the_policy_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path / "cache"))

    class Impatient(Heard):
        def say(self, line: str) -> None:
            Heard.say(self, line)
            if line.startswith("warm start of the policy: 1/"):
                os.kill(os.getpid(), signal.SIGINT)

    settings = make_settings(tmp_path, tmp_path, policy__model=None, policy__copy_steps=100)
    summary = await train(settings, Impatient())
    assert (summary.status, summary.steps) == ("interrupted", 0)
    assert not any(path.is_dir() for path in (tmp_path / "cache" / "policies").iterdir())
