# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How old tokens are: by how many weight updates the policy that sampled them is behind.

A version is a number, or ends in one, as in `step-12`. The age of a token is the version of now less its own. A token
without a version, or of one that is no number, has no known age: under a bound it counts as too old.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from nemo_gym_polar.forest.trace import Trace

_NUMBER = re.compile(r"(\d+)$")


@dataclass(slots=True)
class Ages:
    """The ages of trained tokens; `unknown` counts those without one."""

    tokens: int = 0
    total: int = 0
    oldest: int = 0
    unknown: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.tokens if self.tokens else 0.0

    def within(self, bound: int) -> bool:
        """Whether no token is older."""
        return not self.unknown and self.oldest <= bound

    def merge(self, other: Ages) -> None:
        self.tokens += other.tokens
        self.total += other.total
        self.oldest = max(self.oldest, other.oldest)
        self.unknown += other.unknown

    def add(self, age: int, tokens: int) -> None:
        self.tokens += tokens
        self.total += age * tokens
        self.oldest = max(self.oldest, age)


def version_number(version: str) -> int | None:
    found = _NUMBER.search(version)
    return int(found[1]) if found else None


def measure_ages(traces: Iterable[Trace], now: int) -> Ages:
    """Of all trained tokens of `traces` under weights `now`; tokens sampled under later weights are of age 0."""
    ages = Ages()
    for trace in traces:
        known = 0
        for start, end, age in _spans(trace, now):
            tokens = int(trace.loss_mask[start:end].sum())
            if age is not None:
                ages.add(age, tokens)
                known += tokens
        ages.unknown += trace.trained_tokens - known
    return ages


def without_stale(trace: Trace, now: int, bound: int) -> Trace:
    """`trace` with only those tokens in the loss whose known age is at most `bound`; the same object if all are."""
    fresh = trace.loss_mask.copy()
    fresh[:] = False
    kept = []
    for span, (start, end, age) in zip(trace.versions, _spans(trace, now), strict=True):
        if age is not None and age <= bound:
            fresh[start:end] = trace.loss_mask[start:end]
            kept.append(span)
    if fresh.sum() == trace.trained_tokens:
        return trace
    logprobs = trace.logprobs.copy()
    logprobs[~fresh] = 0.0
    return replace(trace, loss_mask=fresh, logprobs=logprobs, versions=tuple(kept))


def _spans(trace: Trace, now: int) -> Iterable[tuple[int, int, int | None]]:
    for span in trace.versions:
        number = version_number(span.version)
        yield span.start, span.end, None if number is None else max(0, now - number)
