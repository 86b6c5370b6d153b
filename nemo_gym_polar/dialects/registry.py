# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All dialects, and which of them a request belongs to."""

from __future__ import annotations

from nemo_gym_polar.dialects import chat, responses
from nemo_gym_polar.dialects.base import Dialect, Endpoint, Target

DIALECTS: tuple[Dialect, ...] = (responses, chat)
"""Where two know the same path, the first that owns the target is asked; the last one owns what nobody else wants."""


def find(target: Target) -> tuple[Dialect, Endpoint | None]:
    """The dialect of `target` and what is asked of it; an unknown path falls to the dialect that owns its prefix."""
    for dialect in DIALECTS:
        if (endpoint := dialect.endpoint(target)) is not None:
            return dialect, endpoint
    return next((dialect for dialect in DIALECTS if dialect.owns(target)), DIALECTS[-1]), None
