# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Clean-up that cancellation can't interrupt: the sandboxes' own, which sessions need too."""

from __future__ import annotations

from nemo_gym_polar.runtimes.cleanup import to_the_end

__all__ = ["to_the_end"]
