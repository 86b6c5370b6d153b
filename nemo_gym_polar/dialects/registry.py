# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All dialects, and which of them a path belongs to."""

from __future__ import annotations

from nemo_gym_polar.dialects import chat
from nemo_gym_polar.dialects.base import Dialect, Endpoint

DIALECTS: tuple[Dialect, ...] = (chat,)
DEFAULT: Dialect = chat


def find(path: str) -> tuple[Dialect, Endpoint | None]:
    """The dialect of `path` and what is asked of it; an unknown path falls to the dialect that owns its prefix."""
    for dialect in DIALECTS:
        if (endpoint := dialect.endpoint(path)) is not None:
            return dialect, endpoint
    return next((dialect for dialect in DIALECTS if dialect.owns(path)), DEFAULT), None
