# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the gateway asks of a dialect. A dialect is a pure module: bytes in, canonical values out, and back.

The module itself is the implementation (its functions and constants satisfy `Dialect`), so that a new provider API is
one new file and one line in the registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from nemo_gym_polar import chat
from nemo_gym_polar.dialects.recall import Recall

EndpointKind = Literal["generate", "count", "models", "model", "stored", "hello"]

ErrorKind = Literal[
    "invalid_request",
    "authentication",
    "not_found",
    "model_not_found",
    "method_not_allowed",
    "too_large",
    "upgrade_required",
    "context_overflow",
    "budget",
    "rate_limit",
    "server",
]

# What a harness is told once a budget of its session has run out.
WhenExhausted = Literal[
    "error",  # the provider's error for a request that is no use to send again
    "answer",  # a last answer that says so, by which a harness ends of its own accord
]

_STATUS: Mapping[ErrorKind, int] = {
    "invalid_request": 400,
    "authentication": 401,
    "not_found": 404,
    "model_not_found": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "upgrade_required": 426,
    "context_overflow": 400,
    "budget": 400,
    "rate_limit": 429,
    "server": 500,
}


class CallError(Exception):
    """A call that ends in an error. The dialect gives it its provider's shape; `param` names the offending field.

    Of a context that is too long, `asked` and `limit` are tokens, None where the engine does not tell.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        param: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        limit: int | None = None,
        asked: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.status = status or _STATUS[kind]
        self.retry_after = retry_after
        self.limit = limit
        self.asked = asked


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: the path from the provider's root on, the raw query, the headers that tell dialects apart.

    Header names are in lower case.
    """

    path: str
    query: str = ""
    headers: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a target asks for.

    `count` is answered with a number of tokens, `stored` with an earlier answer named `id`, `hello` with nothing, and
    by anyone. `model`, `stream` and `array` are set where the target says so instead of the body.
    """

    kind: EndpointKind
    methods: tuple[str, ...]
    model: str | None = None
    stream: bool | None = None
    array: bool = False
    id: str | None = None


class Dialect(Protocol):
    """One provider API. Paths start at the provider's root: `/v1/chat/completions`, never `/s/{session}/…`."""

    @property
    def NAME(self) -> chat.Dialect: ...  # noqa: N802

    @property
    def RESPONSE_ID_PREFIX(self) -> str: ...  # noqa: N802

    @property
    def CALL_ID_PREFIX(self) -> str: ...  # noqa: N802

    @property
    def KEEP_ALIVE(self) -> bytes: ...  # noqa: N802

    def owns(self, target: Target) -> bool:
        """Whether errors about `target` should come in this dialect's shape."""

    def endpoint(self, target: Target) -> Endpoint | None:
        """What `target` asks for; None if the provider has no such path."""

    def parse(
        self, body: bytes, endpoint: Endpoint, hints: Mapping[str, str], recall: Recall | None = None
    ) -> chat.Request:
        """The canonical request. Raises `CallError` for a body that the provider would refuse.

        With `recall`, what the session said before is not read again, but found.
        """

    def answer(self, completion: chat.Completion, request: chat.Request) -> bytes:
        """The JSON body of an answer that is not streamed."""

    def opening(self, response_id: str, created: int, request: chat.Request) -> bytes:
        """The events of a stream that come before anything is known of the answer; `stream` gives those after them."""

    def stream(self, completion: chat.Completion, request: chat.Request) -> Iterable[bytes]:
        """The server-sent events of an answer, the terminal one last; with `request.array` a JSON array's pieces."""

    def count(self, tokens: int) -> bytes:
        """The JSON body that says how many tokens a prompt has."""

    def models(self, names: Sequence[str]) -> bytes:
        """The list of models."""

    def model(self, name: str) -> bytes:
        """One model."""

    def error(self, failure: CallError) -> bytes:
        """The JSON body of an error."""
