# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What training raises when a run can't go on."""

from __future__ import annotations


class TrainingError(Exception):
    """A run can't go on. The message is one line: what is wrong, with its value, and what to do about it."""
