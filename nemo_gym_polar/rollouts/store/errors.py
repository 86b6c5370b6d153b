# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the store raises."""

from __future__ import annotations


class StoreError(Exception):
    """The store can't be opened, read or written; what was written before is whole. One line with the remedy."""


class StoreInUseError(StoreError):
    """Another service works with this store."""
