# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and kill -9 in every stage: no process is left, and every journal can be read."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import psutil
import pytest

from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.rollouts.stages import Stage
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, Marked

STAGES = [Stage.QUEUED, Stage.INIT, Stage.READY, Stage.RUNNING, Stage.FINISHED, Stage.POSTRUN]


CASES = [
    *((stage, how, "bubblewrap") for stage in STAGES for how in (signal.SIGINT, signal.SIGKILL)),
    *((Stage.RUNNING, how, "local") for how in (signal.SIGINT, signal.SIGKILL)),
]


@pytest.mark.parametrize(("stage", "how", "backend"), CASES)
async def test_no_process_and_a_readable_journal(
    engine: FakeEngine, tmp_path: Path, stage: Stage, how: signal.Signals, backend: str
) -> None:
    marked, directory = Marked(), tmp_path / "run"
    late = stage in (Stage.FINISHED, Stage.POSTRUN)
    daemon = (
        f"(setsid nohup {marked.command} </dev/null >/dev/null 2>&1 &) & setsid {marked.command} & {marked.command}"
    )
    command, evaluate = (ASK_ONCE, daemon) if late else (ASK_ONCE + daemon, "true")
    arguments = [engine.url, str(engine.tokenizer_directory), str(directory), command, evaluate, backend]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.rollout_process", *arguments, stdout=-1, stderr=-1
    )
    await reach(process, stage)
    if stage not in (Stage.QUEUED, Stage.INIT):
        await asyncio.sleep(0.1)
    process.send_signal(how)
    _, stderr = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == -how
    if how == signal.SIGINT:
        assert b"KeyboardInterrupt" in stderr.splitlines()[-1]
    assert await marked.becomes(alive=False, within=60)
    assert await nobody(str(directory))
    for journal in (directory / "journals").glob("*.journal"):
        assert recover(journal).damage is None
    answered = [recover(journal).forest for journal in (directory / "journals").glob("*.journal")]
    assert not late or any(len(forest) for forest in answered)


async def reach(process: asyncio.subprocess.Process, stage: Stage) -> None:
    assert process.stdout
    while True:
        line = await asyncio.wait_for(process.stdout.readline(), 150)
        assert line, "the process ended before it reached the stage"
        if stage in line.decode().split():
            return


async def nobody(word: str, within: float = 60.0) -> bool:
    """Whether, in a while, no process has `word` on its command line: bwrap and its supervisor name the socket."""
    for _ in range(int(within / 0.05)):
        if not any(word in " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])):
            return True
        await asyncio.sleep(0.05)
    return False
