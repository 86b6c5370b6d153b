# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a rollout raises."""

from __future__ import annotations


class RolloutError(Exception):
    """A task can't be run at all: one line that names the field, its value and the remedy."""
