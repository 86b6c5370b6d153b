# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a client of the service raises, by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """The service refused or failed; the message is one line. `status` is HTTP's, None where no answer came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(ServiceError):
    """No answer, or none from the service itself."""


class UnauthorizedError(ServiceError):
    """The token is missing or wrong."""


class NotFoundError(ServiceError):
    """There is no such task, session or node."""


class ConflictError(ServiceError):
    """The task's id is taken, or was cancelled."""


class RefusedError(ServiceError):
    """The request is wrong: the message names the field, its value and the remedy."""


class BusyError(ServiceError):
    """Too many sessions wait; ask again after `retry_after` seconds."""

    def __init__(self, message: str, status: int | None = None, retry_after: float = 1.0) -> None:
        super().__init__(message, status)
        self.retry_after = retry_after


KINDS: Mapping[int, type[ServiceError]] = {
    401: UnauthorizedError,
    404: NotFoundError,
    409: ConflictError,
    413: RefusedError,
    422: RefusedError,
    502: UnreachableError,
    503: UnreachableError,
}


def make_error(status: int, said: Any, retry_after: str | None, url: str) -> ServiceError:
    """From an answer that is none of the good ones, of what is at `url`."""
    message = explained(said) or f"{url} answered {status}: is that the rollout service?"
    if status == 429:
        return BusyError(message, status, seconds(retry_after))
    return KINDS.get(status, ServiceError)(message, status)


def seconds(text: str | None) -> float:
    return float(text) if text and text.isascii() and text.isdigit() else 1.0


def explained(said: Any) -> str:
    """The text of a `{"detail": …}`."""
    detail = said.get("detail", "") if isinstance(said, Mapping) else ""
    if isinstance(detail, list):
        return "; ".join(str(item.get("msg", item)) if isinstance(item, Mapping) else str(item) for item in detail)
    return str(detail)
