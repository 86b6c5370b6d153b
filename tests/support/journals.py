# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Real journals, small enough to reckon with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.chat import Conversation, Message, Text
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import VersionSpan


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


def write_outcome(run: Path, session_id: str, **result: Any) -> Path:
    """What a rollout writes beside the journals when a session of task `t` has ended; its file."""
    path = run / "sessions" / session_id / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"session_id": session_id, "task_id": "t", "sample": 0, "status": "COMPLETED", "reward": 1.0, **result}
    path.write_bytes(orjson.dumps(whole))
    return path
