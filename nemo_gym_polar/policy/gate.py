# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a warm-started policy must be able to do, and what it must not know yet, measured on its own answers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary
from nemo_gym_polar.policy.lessons import policy_renderer
from nemo_gym_polar.policy.sampling import SamplingParams
from nemo_gym_polar.policy.scheduler import Scheduler
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.shape import DecoderShape
from nemo_gym_polar.policy.synthetic import ANSWER, COMMANDS, SHELL, act, short_copy
from nemo_gym_polar.tasks.wording import FILE_NAMES

CHANCE = 1 / (len(COMMANDS) * len(FILE_NAMES))


class WarmStartError(RuntimeError):
    """The policy did not learn what reinforcement learning starts from."""


@dataclass(frozen=True, slots=True)
class Skills:
    """Shares of answers at temperature 1, of 1.0: a well-formed call of the shell tool with one of the commands; the
    call that was asked for; a plain end after a tool result; a name said back."""

    well_formed: float
    right: float
    ended: float
    copied: float

    def check(self) -> None:
        """Raises `WarmStartError` for the first skill that is too low, or too high to be chance."""
        for name, low in (("well_formed", 0.9), ("ended", 0.9), ("copied", 0.6)):
            if getattr(self, name) < low:
                raise WarmStartError(f"warm start: {name}={getattr(self, name):.2f} is below {low}; {_REMEDY}")
        if self.right > CHANCE + 0.1:
            raise WarmStartError(f"warm start: right={self.right:.2f}, but chance is {CHANCE:.3f}; {_REMEDY}")


_REMEDY = "raise policy.steps or take another policy.seed"
_CALL = f"<tool_call>\n<function={SHELL}>\n<parameter=command>\n{{command}}\n</parameter>\n</function>\n</tool_call>"
_CALLS = frozenset(_CALL.format(command=f"{verb} {name}") for verb in COMMANDS for name in FILE_NAMES)


def measure(model: Qwen3ForCausalLM, tokenizer: Tokenizer, *, count: int = 128, seed: int = 0) -> Skills:
    """Let the policy answer `count` chats of each kind, as the engine would."""
    generator = random.Random(seed)
    talk = Talk(model, tokenizer, seed)
    chats = [act(generator) for _ in range(count)]
    copies = [short_copy(generator) for _ in range(count)]
    calls = talk.answers([chat.messages[:-3] for chat in chats])
    ends = talk.answers([chat.messages[:-1] for chat in chats])
    echoes = talk.answers([chat.messages[:-1] for chat in copies])
    return Skills(
        well_formed=_share(call in _CALLS for call in calls),
        right=_share(call == _CALL.format(command=chat.asked) for call, chat in zip(calls, chats, strict=True)),
        ended=_share(end == ANSWER for end in ends),
        copied=_share(chat.asked in echo for echo, chat in zip(echoes, copies, strict=True)),
    )


class Talk:
    """Samples answers to conversations."""

    def __init__(self, model: Qwen3ForCausalLM, tokenizer: Tokenizer, seed: int) -> None:
        decoder = Decoder(DecoderShape.parse(model.config.to_dict()))
        decoder.load(model.state_dict())
        self._scheduler = Scheduler(decoder, rows=64)
        self._renderer = policy_renderer(tokenizer)
        self._vocabulary = Vocabulary(tokenizer)
        self._end = frozenset(self._renderer.get_stop_token_ids())
        self._seeds = random.Random(seed)

    def answers(self, conversations: Iterable[list[dict[str, Any]]]) -> list[str]:
        """One answer each, at temperature 1, without the token that ends it."""
        sequences = [self._sequence(messages) for messages in conversations]
        for sequence in sequences:
            self._scheduler.add(sequence)
        while self._scheduler.running + self._scheduler.waiting:
            self._scheduler.step()
        return [sequence.text for sequence in sequences]

    def _sequence(self, messages: list[dict[str, Any]]) -> SampledSequence:
        prompt = self._renderer.render_ids(messages, add_generation_prompt=True)
        params = SamplingParams(max_tokens=64, seed=self._seeds.getrandbits(32))
        return SampledSequence(prompt, params, self._end, TextStream(self._vocabulary))


def _share(hits: Iterable[bool]) -> float:
    counted = list(hits)
    return sum(counted) / len(counted)
