# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One deadline for all stages of a session."""

from __future__ import annotations

import time


class Deadline:
    """`seconds` from its start on. `at` is in seconds of `time.monotonic()`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds

    def start(self) -> None:
        """Waiting for a place doesn't count."""
        self.at = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        return max(0.0, self.at - time.monotonic())
