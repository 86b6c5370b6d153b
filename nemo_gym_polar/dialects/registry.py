# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All dialects, and which of them a request belongs to."""

from __future__ import annotations

from nemo_gym_polar.dialects import chat, generate_content, messages, responses
from nemo_gym_polar.dialects.base import Dialect, Endpoint, Target

DIALECTS: tuple[Dialect, ...] = (generate_content, messages, responses, chat)
"""In the order in which they are asked; the last one answers for what nobody owns."""


def find(target: Target) -> tuple[Dialect, Endpoint | None]:
    """The dialect of `target` and what is asked of it. Who owns a target decides, even if it knows no such path."""
    for dialect in DIALECTS:
        endpoint = dialect.endpoint(target)
        if endpoint is not None or dialect.owns(target):
            return dialect, endpoint
    return DIALECTS[-1], None
