# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Texts that were encoded before: the system prompt and tools of all samples of a group, a history rendered anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from nemo_gym_polar.tokens import Int32

_ROOM = 4_000_000  # characters; with their ids about 10 MB


class EncodedTexts:
    """The ids of the texts that came last, up to `room` characters in all. May be used by several threads."""

    def __init__(self, encode: Callable[[str], list[int]], room: int = _ROOM) -> None:
        self._encode = encode
        self._room = room
        self._ids: OrderedDict[str, Int32] = OrderedDict()
        self.size = 0
        self._lock = threading.Lock()

    def fresh(self, text: str) -> Int32:
        return np.array(self._encode(text), np.int32)

    def ids(self, text: str) -> Int32:
        """The same array each time: read-only."""
        with self._lock:
            if text in self._ids:
                self._ids.move_to_end(text)
                return self._ids[text]
        ids = self.fresh(text)
        ids.flags.writeable = False
        with self._lock:
            self._keep(text, ids)
        return ids

    def _keep(self, text: str, ids: Int32) -> None:
        if text in self._ids:
            return
        self._ids[text] = ids
        self.size += len(text)
        while self.size > self._room:
            self.size -= len(self._ids.popitem(last=False)[0])
