# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an agent program prints of its run: one JSON object a line, among lines of other kinds.

The output may be the tail of a longer one, so its first line may be cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Event = dict[str, Any]


def events(output: bytes) -> Iterator[Event]:
    return _decoded(output.splitlines())


def last(output: bytes, *kinds: str) -> Event:
    """The last event whose type is one of `kinds`, or {}."""
    found = (event for event in _decoded(reversed(output.splitlines())) if event.get("type") in kinds)
    return next(found, {})


def _decoded(lines: Iterable[bytes]) -> Iterator[Event]:
    for line in lines:
        if not line.startswith(b"{"):
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
