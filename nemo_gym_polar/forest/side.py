# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What goes with tokens: side arrays of one row per token, and the images of a conversation by content hash.

A row of -1 is one that nobody knows: an engine never reads the last token of its own answer, so it routes it nowhere.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.chat import Image, Message, ToolResult
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Turn
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, SideArrays

UNKNOWN = -1


def new_rows(side: SideArrays, count: int) -> SideArrays:
    """The rows of the last `count` tokens, as copies of their own; unknown where there are fewer."""
    return {name: _last(rows, count) for name, rows in side.items()} or NO_SIDE_ARRAYS


def chain_rows(store: TurnStore, turn: Turn, length: int) -> SideArrays:
    """The side arrays over the first `length` tokens of a turn's sequence, of the names that its whole way has."""
    if not turn.side:
        return NO_SIDE_ARRAYS
    way = store.way(turn)
    names = reduce(set.intersection, ({*one.side} for one in way))
    return {name: store.side(turn.index, name)[:length] for name in sorted(names)} or NO_SIDE_ARRAYS


def image_digests(messages: Iterable[Message]) -> tuple[str, ...]:
    """SHA-256 of every image's URL (with `data:` URLs, of the image itself), in the order of reading, in hex."""
    return tuple(sha256(image.url.encode()).hexdigest() for message in messages for image in _images(message))


def encode_side(side: SideArrays) -> dict[str, Any]:
    """For JSON: name → NumPy's dtype, the shape, and the bytes in C order as base64."""
    return {
        name: {"dtype": rows.dtype.str, "shape": list(rows.shape), "data": b64encode(rows.tobytes()).decode()}
        for name, rows in side.items()
    }


def decode_side(given: Mapping[str, Any]) -> SideArrays:
    """Raises `ValueError` or `KeyError` for what `encode_side` did not write."""
    return {
        name: np.frombuffer(b64decode(one["data"]), np.dtype(one["dtype"])).reshape(one["shape"])
        for name, one in given.items()
    } or NO_SIDE_ARRAYS


def _images(message: Message) -> Iterator[Image]:
    for part in message.parts:
        if isinstance(part, Image):
            yield part
        elif isinstance(part, ToolResult):
            yield from (inner for inner in part.parts if isinstance(inner, Image))


def _last(rows: NDArray[Any], count: int) -> NDArray[Any]:
    found = rows[max(0, len(rows) - count) :]
    missing = np.full((count - len(found), *rows.shape[1:]), UNKNOWN, rows.dtype)
    kept = np.concatenate([missing, found])
    kept.flags.writeable = False
    return kept
