# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Real journals, and the commands as a person runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nemo_gym_polar.chat import Conversation, Message, Text
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import VersionSpan

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs `polar …` or `nemo-rl …` in an empty directory."""

    def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        module = {"polar": "nemo_gym_polar.cli.polar", "nemo-rl": "nemo_gym_polar.cli.nemo_rl"}[program]
        code = f"import sys; from {module} import main; sys.argv[0] = {program!r}; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "200", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def said(role: str, text: str) -> Message:
    return Message("user" if role == "user" else "assistant", (Text(text),))


async def record_session(directory: Path, session_id: str, turns: int) -> Path:
    """A session of `turns` calls, each of which continues the one before: 10 new tokens in, 3 sampled."""
    path = directory / f"{session_id}.journal"
    committer = Committer()
    recorder = await Recorder.open(path, session_id, committer)
    history: list[Message] = []
    tokens = np.empty(0, np.int32)
    for number in range(turns):
        history.append(said("user", f"question {number}"))
        answer = said("assistant", f"answer {number}")
        context = np.concatenate([tokens, np.arange(10, dtype=np.int32) + 20 * number])
        sampled = np.array([1, 2, 3], np.int32)
        logprobs = np.array([-0.5, -0.25, -1.0], np.float32)
        spans = (VersionSpan(str(number), 0, 3),)
        match = recorder.match(Conversation(tuple(history)))
        await recorder.record(match, Generation(context, sampled, logprobs, answer, versions=spans))
        history.append(answer)
        tokens = np.concatenate([context, sampled])
    await recorder.close({"status": "COMPLETED"})
    committer.close()
    return path
