# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with tokens and with the file that keeps them."""

from __future__ import annotations


class ForestError(Exception):
    """The base of every error that this package raises on purpose."""


class TokenError(ForestError, ValueError):
    """An engine's answer that can't be trained on: the base of the four below."""


class LengthMismatchError(TokenError):
    """Two arrays that describe the same tokens differ in length."""


class LogprobError(TokenError):
    """A log-probability is NaN, infinite or positive."""


class MissingTokensError(TokenError):
    """An answer that the harness would see came without token ids."""


class TokenIdError(TokenError):
    """A token id is negative, or the array is not one-dimensional int32."""


class VersionSpanError(TokenError):
    """Version spans leave gaps, overlap, or don't cover the sampled tokens."""


class UnknownTurnError(ForestError, LookupError):
    """A turn index that the forest doesn't hold."""


class BuilderError(ForestError, ValueError):
    """An unknown builder, or a builder setting that makes no sense."""


class JournalError(ForestError, OSError):
    """The journal could not be written; the file on disk ends with its last whole record."""


class JournalFormatError(ForestError, ValueError):
    """The file is not a journal, or its schema is newer than this reader."""


class CorruptJournalError(JournalFormatError):
    """A record before the end of the file is damaged. `offset` is where, in bytes; `turns` is how many are whole."""

    def __init__(self, message: str, *, offset: int, turns: int = 0) -> None:
        super().__init__(message)
        self.offset = offset
        self.turns = turns
