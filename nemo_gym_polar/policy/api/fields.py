# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Typed reading of JSON requests: what can't be used is refused by field, with what was found and what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request

from nemo_gym_polar.policy.api.errors import ApiError


class Fields:
    """A JSON object; `path` is its place in the request. A field that is absent or null reads as its default."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path

    @classmethod
    async def read(cls, request: Request) -> Fields:
        """The body of `request`; an empty body reads as an empty object."""
        data = await request.body()
        try:
            value = orjson.loads(data) if data.strip() else {}
        except orjson.JSONDecodeError as error:
            raise ApiError(f"The request body is not valid JSON: {error}. Send a JSON object.") from error
        if not isinstance(value, dict):
            raise ApiError(f"The request body is {kind_of(value)}; send a JSON object.")
        return cls(value)

    def place(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def wrong(self, name: str, expected: str) -> ApiError:
        place = self.place(name)
        value = repr(self._values.get(name))
        shown = value if len(value) <= 60 else value[:57] + "..."
        return ApiError(f"{place}={shown} is not valid: expected {expected}.", param=place)

    def refuse(self, name: str, *accepted: object, remedy: str) -> None:
        """Refuse any value of `name` but null and `accepted`: doing something else instead would mislead."""
        value = self.get(name)
        if value is not None and value not in accepted:
            raise ApiError(f"{self.place(name)}={value!r} is not supported; {remedy}.", param=self.place(name))

    def text(self, name: str, default: str | None = None) -> str | None:
        return default if self.get(name) is None else self._typed(name, str, "a string")

    def required_text(self, name: str) -> str:
        return self._typed(name, str, "a string")

    def flag(self, name: str, *, default: bool = False) -> bool:
        return default if self.get(name) is None else self._typed(name, bool, "true or false")

    def integer(self, name: str, *, low: int | None = None, high: int | None = None) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not _within(value, low, high):
            raise self.wrong(name, f"an integer{_bounds(low, high)}")
        return int(value)

    def number(self, name: str, *, low: float | None = None, high: float | None = None) -> float | None:
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not _within(value, low, high):
            raise self.wrong(name, f"a number{_bounds(low, high)}")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A string, or an array of strings; empty ones are refused."""
        value = self.get(name)
        texts = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise self.wrong(name, "a string or an array of strings, none of them empty")
        return tuple(texts)

    def tokens(self, name: str, vocab: int) -> list[int]:
        """An array of token ids below `vocab`."""
        value = self.get(name)
        if not is_token_list(value, vocab):
            raise self.wrong(name, f"an array of token ids from 0 to {vocab - 1}")
        tokens: list[int] = value
        return tokens

    def objects(self, name: str) -> list[dict[str, Any]]:
        """An array of objects."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(name, "an array of objects")
        return value

    def section(self, name: str) -> Fields:
        """An object; an absent one reads as empty."""
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Fields(value or {}, self.place(name))

    def mapping(self) -> dict[str, Any]:
        return dict(self._values)

    def _typed[Kind](self, name: str, kind: type[Kind], expected: str) -> Kind:
        value = self.get(name)
        if not isinstance(value, kind):
            raise self.wrong(name, expected)
        return value


def is_token_list(value: object, vocab: int) -> bool:
    return isinstance(value, list) and all(type(token) is int and 0 <= token < vocab for token in value)


def kind_of(value: object) -> str:
    """The JSON type of a decoded value."""
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" of at most {high}"
    return f" of at least {low}" if high is None else f" from {low} to {high}"
