# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Pi through the real service, as a user runs it: `polar submit --wait`; and over a kill -9 of the service."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.pi import PiHarness
from nemo_gym_polar.rollouts.client import RolloutClient
from tests.support.fake_engine import FakeEngine, bash
from tests.support.serve_process import TOKEN, ServeProcess, engine_options, write_task

TASK: dict[str, Any] = {
    "task_id": "pi",
    "instruction": "Create hello.txt in the current directory.",
    "num_samples": 2,
    "timeout_seconds": 180,
    "agent": {"harness": "pi"},
    "evaluator": {"strategy": "command", "config": {"command": "grep -qx hi hello.txt"}},
    "metadata": {"group_id": "hello", "rollout_step": 1},
}


def script(context: str) -> str:
    return "Done." if "<tool_response>" in context else bash("echo hi > hello.txt")


@pytest.mark.timeout(600)
async def test_pi_by_the_command_line_and_over_a_kill(engine: FakeEngine, tmp_path: Path) -> None:
    PiHarness({}).install()
    engine.script = script
    options = ("--service", "--port", "0", "--directory", "run", *engine_options(engine))
    async with ServeProcess(tmp_path, *options) as service:
        path = write_task(tmp_path / "task.json", TASK)
        ended = await service.polar("submit", str(path), "--wait", "--timeout", "110", "--json")
        assert ended.returncode == 0, ended.stderr + ended.stdout
        done = json.loads(ended.stdout)
        assert [(one["status"], one["reward"]) for one in done["results"]] == [("COMPLETED", 1.0)] * 2
        async with RolloutClient(service.url, TOKEN) as client:
            for one in done["results"]:
                (trace,) = await client.traces(one["session_id"])
                assert any(trace.token_ids.tolist() == served.context + served.sampled for served in engine.served)
            firsts = (await client.task("pi")).results
            assert firsts[0].trajectory and firsts[1].trajectory
            prompts = [one.trajectory.traces[0].prompt_ids for one in firsts if one.trajectory]
            assert prompts[0] == prompts[1]
            engine.faults.extend(["hang"] * 2)
            await client.submit({**TASK, "task_id": "again"})
            await running(client, "again", 2)
        await service.stop(signal.SIGKILL)
        engine.faults.clear()
        await service.start()
        async with RolloutClient(service.url, TOKEN) as client:
            task = await client.wait("again", timeout=150)
            attempts = await client.sessions("again")
        assert [(one.sample, one.attempt, one.state) for one in task.results] == [
            (0, 2, "COMPLETED"),
            (1, 2, "COMPLETED"),
        ]
        assert [one.reward for one in task.results] == [1.0, 1.0]
        assert sum(one.current for one in attempts) == 2


async def running(client: RolloutClient, task_id: str, count: int) -> None:
    async with asyncio.timeout(90):
        while True:
            found = await client.sessions(task_id)
            if sum(one.state == "RUNNING" for one in found) == count:
                return
            await asyncio.sleep(0.1)
