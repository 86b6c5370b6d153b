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


@dataclass(frozen=True, slots=True)
class View:
    """What other threads may read of an answer: how many tokens it has, its text, and why it ended.

    While it grows, text that a stop string may still take back is left out.
    """

    tokens: int = 0
    text: str = ""
    finish_reason: FinishReason | None = None


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
    stop_reason: int | str | None = None
    error: str | None = None
    text: str = ""
    view: View = View()
    number: int = field(default_factory=lambda: next(_NUMBERS))
    draw: Draw = field(init=False)

    def __post_init__(self) -> None:
        seed = None if self.params.seed is None else self.params.seed % (1 << 64)
        banned = tuple(self.end_tokens | self.params.stop_token_ids) if self.params.min_tokens else ()
        self.draw = Draw(self.params, np.random.default_rng(seed), banned)

    @property
    def finish_reason(self) -> FinishReason | None:
        return self.view.finish_reason

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.choices)

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
        enough = len(self.choices) >= self.params.min_tokens
        if enough:
            self.draw.banned = ()
        if enough and self._stops(choice.token, known):
            self.finish("stop")
        elif len(self.choices) >= self.params.max_tokens:
            self.finish("length")
        else:
            held = max((len(stop) for stop in self.params.stop), default=1) - 1
            self.view = View(len(self.choices), self.text[:-held] if held else self.text)

    def finish(self, reason: FinishReason, *, error: str | None = None) -> None:
        """End here; text of a character that was cut in half becomes U+FFFD."""
        self.text += self.stream.close()
        self.error = error
        self.view = View(len(self.choices), self.text, reason)

    def _stamp(self, version: str) -> None:
        count = len(self.choices)
        if self.versions and self.versions[-1].version == version:
            self.versions[-1] = VersionSpan(version, self.versions[-1].start, count)
        else:
            self.versions.append(VersionSpan(version, count - 1, count))

    def _stops(self, token: int, known: int) -> bool:
        """Whether an end token, a stop token or a stop string is there; text before `known` was searched already."""
        if token in self.params.stop_token_ids:
            self.stop_reason = token
            return True
        if token in self.end_tokens and not self.params.ignore_end:
            return True
        hits = [(self.text.find(stop, max(0, known - len(stop) + 1)), stop) for stop in self.params.stop]
        found = min(((at, stop) for at, stop in hits if at >= 0), default=None)
        if found is None:
            return False
        at, self.stop_reason = found
        self.stream.close()
        self.text = self.text[: at + (len(self.stop_reason) if self.params.include_stop_text else 0)]
        return True
