# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a removal comes to."""

from __future__ import annotations

from pydantic import BaseModel


class Pruned(BaseModel):
    """What was removed, or would be. `held` tasks are beyond the bounds, too, but a callback of theirs was not
    delivered; of `failed` ones the files could not be removed."""

    tasks: int = 0
    sessions: int = 0
    held: int = 0
    failed: int = 0
    dry_run: bool = False
