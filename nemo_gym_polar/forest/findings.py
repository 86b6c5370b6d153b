# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an audit can find."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Breach(StrEnum):
    """How turns or traces can lie."""

    DIGEST = "digest"
    """Stored tokens or log-probabilities are not what was digested."""
    STRUCTURE = "structure"
    """A turn hangs where its edge says it can't."""
    LENGTH = "length"
    """Arrays that describe the same tokens differ in length."""
    CONTEXT = "context"
    """A trace's tokens are not those of the turns that it claims."""
    MASK = "mask"
    """The loss is on a token that no owned turn sampled, or misses part of one."""
    LOGPROB = "logprob"
    """A log-probability differs from the recorded one."""
    VERSION = "version"
    """Version spans don't cover exactly the tokens in the loss, or name other weights than recorded."""
    OWNER = "owner"
    """A turn is owned twice, or owned though its answer was not kept."""
    SHARING = "sharing"
    """A trace does not begin with its parent's tokens as it says."""
    LABEL = "label"
    """A trace is of another kind, or parts from its parent by another edge, than the forest says."""
    ACCOUNT = "account"
    """Sampled tokens are neither trained on nor counted as dropped."""


@dataclass(frozen=True, slots=True)
class Finding:
    breach: Breach
    message: str
    turn: int | None = None
    trace: int | None = None
