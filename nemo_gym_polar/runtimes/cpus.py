# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which processors a sandbox starts on.

Affinity, not a quota: it is what `nproc`, test runners and builds go by; a program may still widen it for itself.
"""

from __future__ import annotations

import itertools
import math
import os

_turns = itertools.count()


def choose(cpus: float | None) -> list[int]:
    """As many as asked for, rounded up, taken in turn from those that this process has; empty: no choice to make."""
    mine = sorted(os.sched_getaffinity(0))
    if cpus is None or cpus >= len(mine):
        return []
    wanted = math.ceil(cpus)
    first = next(_turns) * wanted
    return sorted(mine[(first + offset) % len(mine)] for offset in range(wanted))
