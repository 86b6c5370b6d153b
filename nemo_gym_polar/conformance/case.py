# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A case, what it is asked of, and how it says no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

TIMEOUT = 120.0  # seconds for one call; a cold engine takes its time
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""A PNG of one pixel, in base64."""

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "What is the weather in Paris? Answer in one word."


class ConformanceError(Exception):
    """The gateway answered otherwise than the provider would."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The gateway under test. `url` is where a provider's root would be: «http://host:port/s/SESSION»."""

    url: str
    key: str
    model: str


@dataclass(frozen=True, slots=True)
class Case:
    """`run` returns a remark, «» for none, and raises `ConformanceError` or a client's own error."""

    dialect: str
    name: str
    run: Callable[[Subject], str]


def check(condition: object, said: str) -> None:
    if not condition:
        raise ConformanceError(said)


def refused(error: type[Exception], call: Callable[[], object]) -> Exception:
    """The error of `call`, which must be of this class of the client's."""
    try:
        call()
    except error as expected:
        return expected
    except Exception as other:
        raise ConformanceError(f"{type(other).__name__} in place of {error.__name__}: {other}") from other
    raise ConformanceError(f"no {error.__name__}: the call went through")


def wrong(said: str) -> NoReturn:
    raise ConformanceError(said)
