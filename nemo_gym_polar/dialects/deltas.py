# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Cutting a finished text into the pieces that a stream sends."""

from __future__ import annotations

from collections.abc import Iterator

DELTA_CHARACTERS = 48


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), DELTA_CHARACTERS):
        yield text[start : start + DELTA_CHARACTERS]
