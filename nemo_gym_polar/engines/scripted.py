# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine in this process that says what a script says: for trials of everything around a model.

Answers are encoded by a real tokenizer. What was sampled is kept, so that it can be compared with what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines.base import ReplicaState, Sampled
from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.tokens import Int32

Script = Callable[[str], str]


def tool_call(name: str, arguments: dict[str, str]) -> str:
    """What a model of the Qwen3.5 family writes to call a tool."""
    given = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{given}</function>\n</tool_call>"


@dataclass(frozen=True, slots=True)
class Served:
    """One generation."""

    context: Int32
    sampled: Int32


class ScriptedEngine:
    """`script` gets the decoded context and gives the answer's text. The n-th token has the log-probability -n/1000."""

    def __init__(self, tokenizer: FileTokenizer, script: Script) -> None:
        if tokenizer.eos_token_id is None:
            raise ValueError(f"the tokenizer of {tokenizer.name_or_path} has no <|im_end|>, which ends a turn")
        self.tokenizer = tokenizer
        self.script = script
        self.served: list[Served] = []
        self._end = tokenizer.eos_token_id

    async def sample(self, context: Int32, sampling: Sampling, *, session: str, known: int = 0) -> Sampled:
        ids = [*self.tokenizer.encode(self.script(self.tokenizer.decode(context.tolist()))), self._end]
        sampled = np.asarray(ids[: sampling.max_tokens], np.int32)
        self.served.append(Served(context, sampled))
        logprobs = np.arange(1, len(sampled) + 1, dtype=np.float32) * np.float32(-0.001)
        return Sampled(sampled, logprobs, "stop" if sampled[-1] == self._end else "length", ())

    async def check(self) -> None:
        """It is always there."""

    def join(self, session: str, group: str) -> None:
        """It has no replicas."""

    def release(self, session: str) -> None:
        """It holds nothing for a session."""

    async def pressure(self) -> None:
        return None

    def replicas(self) -> tuple[ReplicaState, ...]:
        return ()

    async def close(self) -> None:
        """It holds nothing at all."""
