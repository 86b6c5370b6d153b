# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a session said before is not read again.

A harness repeats its whole history in every request. Here the last few histories are kept as JSON text, each with the
reader that has read it; a request that begins with the same text goes on with a copy of that reader. So only new items
cost anything, and what was read before are the very same objects, which the forest knows again without comparing them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import orjson

_HISTORIES = 4  # the task's own and some sub-agents' that take turns with it
_VALUES = 8


class Reader(Protocol):
    """Reads a history item by item."""

    def read(self, item: Any, path: str) -> None: ...

    def copy(self) -> Self:
        """A reader that has read the same and goes on by itself."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A history; `text` is its JSON without the closing bracket, `given` what its reader went by besides."""

    reader: Reader
    given: tuple[object, ...]
    text: bytes
    count: int

    def begins(self, text: bytes, blank: Reader, given: tuple[object, ...]) -> bool:
        """Whether `text` is a list that begins with this one: JSON reads alike up to there, and there an item ends."""
        return (
            type(self.reader) is type(blank)
            and all(mine is theirs for mine, theirs in zip(self.given, given, strict=True))
            and text.startswith(self.text)
            and text[len(self.text)] in b",]"
        )


class Recall:
    """One session's memory of requests: the latest histories and the latest values."""

    def __init__(self) -> None:
        self._histories: list[_Known] = []  # the latest first
        self._values: OrderedDict[tuple[object, bytes], Any] = OrderedDict()

    def history[R: Reader](self, blank: R, items: list[Any], path: str, *given: object) -> R:
        """A reader like `blank` that has read all `items`; it is kept, so it must not read on.

        What it goes by besides the items is `given`, and only the very same objects count as the same.
        """
        text = _text(items)
        known = next((one for one in self._histories if text and one.begins(text, blank, given)), None)
        reader, start = (cast("R", known.reader.copy()), known.count) if known else (blank, 0)
        for index in range(start, len(items)):
            reader.read(items[index], f"{path}[{index}]")
        if text and items:
            self._keep(_Known(reader, given, text[:-1], len(items)), known)
        return reader

    def value[T](self, make: Callable[[Any], T], raw: Any) -> T:
        """`make(raw)`: the same object for as long as `raw` is the same JSON."""
        text = _text(raw)
        if text is None:
            return make(raw)
        key = (make, text)
        value: T = self._values[key] if key in self._values else make(raw)
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _VALUES:
            self._values.popitem(last=False)
        return value

    def _keep(self, new: _Known, instead_of: _Known | None) -> None:
        others = [one for one in self._histories if one is not instead_of]
        self._histories = [new, *others][:_HISTORIES]


def _text(value: Any) -> bytes | None:
    """JSON that differs wherever `value` differs: Python takes 1 for True and 1.0. None if it is nested too deeply."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None
