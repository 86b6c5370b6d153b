# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Continuous batching: which sequence gets which work in a step.

The first rows of the cache belong to the sequences that are decoding, the row after them to the one whose prompt is
being read; so a decode step works on one block of the cache. A prompt is read from its last receptive field on, which
is exact. After a weight update every sequence in flight is read again under the new weights: from there on each
token is drawn from the new policy, given its context, and from nothing in between.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.sampling import Choice, describe, sample
from nemo_gym_polar.policy.sequence import FinishReason, SampledSequence

_NOT_FINITE = "the model's output is not finite; load finite weights"


@dataclass(slots=True)
class _Reading:
    """A prompt being read: positions `first` to `next` are in the cache."""

    sequence: SampledSequence
    first: int
    next: int


class Scheduler:
    """Runs sequences to their end. `rows` run at once; `chunk` prompt tokens at most are read in a step."""

    def __init__(self, decoder: Decoder, *, rows: int = 32, chunk: int = 512, version: str = "0") -> None:
        self._decoder = decoder
        self._cache = decoder.new_cache(rows)
        self._rows = rows
        self._chunk = chunk
        self._waiting: deque[SampledSequence] = deque()
        self._decoding: list[SampledSequence] = []
        self._reading: _Reading | None = None
        self.version = version
        self.prompt_tokens = 0
        self.sampled_tokens = 0
        self.weight_loads = 0

    @property
    def running(self) -> int:
        return len(self._decoding) + (self._reading is not None)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, sequence: SampledSequence) -> None:
        self._waiting.append(sequence)

    def abort(self, sequence: SampledSequence) -> bool:
        """End a sequence now; False if it has ended already, or never came."""
        if self._reading is not None and self._reading.sequence is sequence:
            self._reading = None
        elif sequence in self._waiting:
            self._waiting.remove(sequence)
        elif sequence in self._decoding:
            self._free(self._decoding.index(sequence))
        else:
            return False
        sequence.finish("abort")
        return True

    def abort_all(self, reason: FinishReason = "abort", *, error: str | None = None) -> list[SampledSequence]:
        """End everything that runs or waits, and return it."""
        reading = [self._reading.sequence] if self._reading else []
        ended = [*self._decoding, *reading, *self._waiting]
        for sequence in ended:
            sequence.finish(reason, error=error)
        self._decoding, self._reading = [], None
        self._waiting.clear()
        return ended

    def load(self, weights: Mapping[str, Tensor], version: str | None = None) -> None:
        """Replace the weights between two steps. On a `WeightsError` nothing has changed."""
        self._decoder.load(weights)
        self.version = version or self.version
        self.weight_loads += 1
        reading = [self._reading.sequence] if self._reading else []
        for sequence in reading:
            sequence.prompt_choices.clear()
        self._waiting.extendleft(reversed([*self._decoding, *reading]))
        self._decoding, self._reading = [], None

    @torch.inference_mode()
    def step(self, *, admit: bool = True) -> list[SampledSequence]:
        """One round of work: read prompts, then one token for every decoding sequence. Returns what moved on.

        With `admit` off nothing that waits is begun.
        """
        decoding = list(self._decoding)
        if decoding:
            self._decode()
        return decoding + self._read_prompts(admit=admit)

    def _decode(self) -> None:
        running = self._decoding
        tokens = [sequence.choices[-1].token for sequence in running]
        logits = self._decoder.decode(self._cache, tokens, [sequence.length - 1 for sequence in running])
        choices = sample(logits, [sequence.draw for sequence in running])
        for sequence, choice in zip(running, choices, strict=True):
            self._append(sequence, choice)
        for row in reversed(range(len(running))):
            if running[row].finish_reason is not None:
                self._free(row)

    def _append(self, sequence: SampledSequence, choice: Choice) -> None:
        if math.isfinite(choice.logprob):
            sequence.append(choice, self.version)
            self.sampled_tokens += 1
        else:
            sequence.finish("error", error=_NOT_FINITE)

    def _free(self, row: int) -> None:
        """Give up a decoding row; the last one takes its place, and a prompt being read moves up."""
        last = len(self._decoding) - 1
        if row != last:
            self._cache.move(last, row)
            self._decoding[row] = self._decoding[last]
        self._decoding.pop()
        if self._reading is not None:
            self._cache.move(last + 1, last)

    def _read_prompts(self, *, admit: bool) -> list[SampledSequence]:
        budget = self._chunk
        moved: list[SampledSequence] = []
        while budget > 0:
            if self._reading is None:
                if not admit or not self._waiting or len(self._decoding) >= self._rows:
                    break
                self._reading = self._begin(self._waiting.popleft())
            sequence, known = self._reading.sequence, self._reading.next
            self._read(self._reading, budget)
            budget -= sequence.length - known
            moved.append(sequence)
        return moved

    def _begin(self, sequence: SampledSequence) -> _Reading:
        field = self._decoder.shape.receptive_field
        first = 0 if field is None or _wants_prompt(sequence) else max(0, sequence.length - field)
        return _Reading(sequence, first, first)

    def _read(self, reading: _Reading, budget: int) -> None:
        """Read up to `budget` tokens; after the last one, sample the first token of the answer."""
        sequence = reading.sequence
        tokens = sequence.tokens_from(reading.next)[:budget]
        start, reading.next = reading.next, reading.next + len(tokens)
        self.prompt_tokens += len(tokens)
        last, every = reading.next == sequence.length, _wants_prompt(sequence)
        logits = self._decoder.prefill(
            self._cache, len(self._decoding), tokens, start, first=reading.first, last=last, every=every
        )
        if every and logits is not None:
            self._describe_prompt(sequence, logits, start)
        if last and logits is not None:
            self._reading = None
            self._start_answer(sequence, logits[-1:])

    def _start_answer(self, sequence: SampledSequence, logits: Tensor) -> None:
        if sequence.params.max_tokens == 0:
            sequence.finish("length")
            return
        self._append(sequence, sample(logits, [sequence.draw])[0])
        if sequence.finish_reason is None:
            self._decoding.append(sequence)

    def _describe_prompt(self, sequence: SampledSequence, logits_TV: Tensor, start: int) -> None:
        """Score the prompt's tokens start + 1, … under the model at temperature 1."""
        following = list(sequence.prompt[start + 1 : start + 1 + len(logits_TV)])
        if not following:
            return
        logprobs = torch.log_softmax(logits_TV[: len(following)], -1)
        tops = [sequence.params.prompt_logprobs or 0] * len(following)
        sequence.prompt_choices += describe(logprobs, torch.tensor(following, device=logprobs.device), tops)


def _wants_prompt(sequence: SampledSequence) -> bool:
    wanted = sequence.params.prompt_logprobs is not None
    return wanted and len(sequence.prompt_choices) < len(sequence.prompt) - 1
