# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One answer in the making: its context, what was sampled so far, and when it ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nemo_gym_polar.policy.detokenizer import TextStream
from nemo_gym_polar.policy.sampling import Choice, Draw, SamplingParams
from nemo_gym_polar.tokens import VersionSpan

FinishReason = Literal["stop", "length", "abort", "error"]
_NUMBERS = itertools.count()


@dataclass(slots=True, eq=False)
class SampledSequence:
    """A prompt being continued. `text` leaves out a stop string that ended it; `choices` never leave out a token.

    `prompt_choices` describe the prompt's tokens from the second on, if they were asked for.
    """

    prompt: Sequence[int]
    params: SamplingParams
    end_tokens: frozenset[int]
    stream: TextStream
    choices: list[Choice] = field(default_factory=list)
    prompt_choices: list[Choice] = field(default_factory=list)
    versions: list[VersionSpan] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    error: str | None = None
    text: str = ""
    number: int = field(default_factory=lambda: next(_NUMBERS))
    draw: Draw = field(init=False)

    def __post_init__(self) -> None:
        seed = None if self.params.seed is None else self.params.seed % (1 << 64)
        banned = tuple(self.end_tokens | self.params.stop_token_ids) if self.params.min_tokens else ()
        self.draw = Draw(self.params, np.random.default_rng(seed), banned)

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.choices)

    @property
    def settled_text(self) -> str:
        """The text that no later stop string can take back."""
        held = max((len(stop) for stop in self.params.stop), default=1) - 1
        return self.text if self.finish_reason or not held else self.text[:-held]

    def tokens_from(self, start: int) -> list[int]:
        """The context from position `start` on: prompt, then samples."""
        prompt = list(self.prompt[start:])
        return prompt + [choice.token for choice in self.choices[max(0, start - len(self.prompt)) :]]

    def append(self, choice: Choice, version: str) -> None:
        """Take the next token, sampled under weights `version`; sets `finish_reason` if it is the last."""
        self.choices.append(choice)
        self._stamp(version)
        known = len(self.text)
        self.text += self.stream.add(choice.token)
        if len(self.choices) >= self.params.min_tokens:
            self.draw.banned = ()
            self._check_end(choice.token, known)
        if self.finish_reason is None and len(self.choices) >= self.params.max_tokens:
            self.finish("length")

    def finish(self, reason: FinishReason, *, error: str | None = None) -> None:
        """End here; text of a character that was cut in half becomes U+FFFD."""
        self.finish_reason = reason
        self.error = error
        self.text += self.stream.close()

    def _stamp(self, version: str) -> None:
        count = len(self.choices)
        if self.versions and self.versions[-1].version == version:
            self.versions[-1] = VersionSpan(version, self.versions[-1].start, count)
        else:
            self.versions.append(VersionSpan(version, count - 1, count))

    def _check_end(self, token: int, known: int) -> None:
        """Stop at an end token, a stop token or a stop string; the text before `known` was searched already."""
        if token in self.params.stop_token_ids:
            self.stop_reason = token
            self.finish("stop")
        elif token in self.end_tokens and not self.params.ignore_end:
            self.finish("stop")
        elif hits := self._stop_strings(known):
            at, self.stop_reason = min(hits)
            self.finish("stop")
            self.text = self.text[: at + (len(self.stop_reason) if self.params.include_stop_text else 0)]

    def _stop_strings(self, known: int) -> list[tuple[int, str]]:
        found = [(self.text.find(stop, max(0, known - len(stop) + 1)), stop) for stop in self.params.stop]
        return [(at, stop) for at, stop in found if at >= 0]
