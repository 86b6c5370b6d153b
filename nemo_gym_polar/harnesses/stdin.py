# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An instruction by stdin: it may be of any length and begin with anything."""

from __future__ import annotations

FEED = 'file=$1; shift; exec "$@" < "$file"'


def fed(argv: tuple[str, ...], path: str) -> tuple[str, ...]:
    """`argv`, which reads the file at `path` as its input."""
    return ("sh", "-c", FEED, "sh", path, *argv)
