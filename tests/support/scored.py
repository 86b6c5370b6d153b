# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions sampled from a real policy, recorded as they were or as a recorder would that splices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from nemo_gym_polar.chat import Conversation, Message, Sampling
from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import Int32
from tests.support.journals import said

NEW = 3  # tokens that each question adds: few, so that the answer before them is near


async def sample_session(
    engine: VLLM, tokenizer: Tokenizer, path: Path, *, turns: int = 4, spliced: bool = False, length: int = 16
) -> Path:
    """Each turn continues the one before. `spliced`: the engine reads earlier answers tokenised anew, and the ids that
    were sampled are put in their place afterwards, as the reference system does."""
    committer = Committer()
    recorder = await Recorder.open(path, path.stem, committer)
    history: list[Message] = []
    known = read = np.arange(40, 60, dtype=np.int32)
    for number in range(turns):
        sampled = await engine.sample(read, Sampling(temperature=1.0, max_tokens=length, seed=number), session="s")
        history.append(said("user", f"question {number}"))
        answer = said("assistant", f"answer {number}")
        await recorder.record(recorder.match(Conversation(tuple(history))), _generation(known, sampled, answer))
        history.append(answer)
        question = np.arange(NEW, dtype=np.int32) + 100 + number
        anew = np.array(tokenizer.encode(tokenizer.decode(sampled.token_ids.tolist())).ids, np.int32)
        assert not np.array_equal(anew, sampled.token_ids)
        known = np.concatenate([known, sampled.token_ids, question])
        read = np.concatenate([read, anew, question]) if spliced else known
    await recorder.close({"status": "COMPLETED"})
    committer.close()
    return path


def _generation(context: Int32, sampled: Sampled, answer: Message) -> Generation:
    ids, logprobs = sampled.token_ids, sampled.logprobs
    return Generation(context, ids, logprobs, answer, finish_reason=sampled.finish_reason, versions=sampled.versions)
