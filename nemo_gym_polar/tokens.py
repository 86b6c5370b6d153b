# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of tokens and the weights they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]
Bool = NDArray[np.bool_]

SideArrays = Mapping[str, NDArray[Any]]
"""By name, arrays with one row per token: what an engine says beside ids and log-probabilities, like routed experts."""

NO_SIDE_ARRAYS: SideArrays = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """Tokens [start, end) of an array were sampled under weights `version`."""

    version: str
    start: int
    end: int
