# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the replies of all engines have in common: statuses, JSON, ids and log-probabilities that belong together."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.chat import FinishReason
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.engines.replicas import Reply
from nemo_gym_polar.tokens import Float32, Int32

# NeMo RL says «fills or exceeds max_model_len», vLLM and SGLang «context length» in several sentences.
_OVERFLOW_MARKS = ("context length", "max_model_len", "maximum model length", "context window")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a reply comes from, and what is usually the matter when it lacks something."""

    kind: str
    path: str
    no_ids: str
    no_logprobs: str = "a router in between may strip them"


def decoded(reply: Reply, source: Source) -> dict[str, Any]:
    """The JSON object of a 200; any other status becomes the error that a harness should see."""
    if reply.status != 200:
        raise _refused(reply, source)
    try:
        value = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        raise malformed(source, f"it is not JSON: {reply.body[:80]!r}") from None
    if not isinstance(value, dict):
        raise malformed(source, "it is not an object")
    return value


def _refused(reply: Reply, source: Source) -> EngineError:
    said = reply.body[:300].decode("utf-8", "replace")
    message = f"The engine answered {source.path} with {reply.status}: {said}"
    if reply.status in (429, 503):
        return EngineError(message, fault="overloaded", status=reply.status, retry_after=reply.retry_after)
    if reply.status == 400 and any(mark in said for mark in _OVERFLOW_MARKS):
        return ContextOverflowError(message)
    if reply.status in (404, 405):
        message += f" (engine.kind is {source.kind!r}: is that what runs there, and is engine.model its name for it?)"
    return EngineError(message, status=400 if reply.status in (400, 422) else 502)


def malformed(source: Source, why: str) -> EngineError:
    return EngineError(f"The engine's reply to {source.path} can't be read: {why}.", fault="malformed")


def misaligned(source: Source, why: str) -> EngineError:
    return EngineError(f"{source.path}: {why}.", fault="misaligned")


def missing_ids(source: Source, what: str) -> EngineError:
    return EngineError(f"{source.path} gave no {what}: {source.no_ids}.", fault="no_ids")


def missing_logprobs(source: Source) -> EngineError:
    return EngineError(f"{source.path} gave no log-probabilities: {source.no_logprobs}.", fault="no_logprobs")


def first_choice(answer: dict[str, Any], source: Source) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise malformed(source, "it has no choices")
    first: dict[str, Any] = choices[0]
    return first


def count(answer: dict[str, Any], source: Source) -> int:
    """What `/tokenize` counted."""
    tokens = answer.get("count")
    if not isinstance(tokens, int):
        raise malformed(source, "it has no count")
    return tokens


def cached(usage: Any) -> int | None:
    """Prompt tokens that came from the prefix cache, where the server counts them."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    tokens = details.get("cached_tokens") if isinstance(details, dict) else None
    return tokens if isinstance(tokens, int) else None


def column(entries: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """One value of each entry, None where it is missing."""
    try:
        return list(map(itemgetter(name), entries))  # without a step of Python for each token
    except KeyError:
        return [entry.get(name) for entry in entries]


def paired(ids: Any, logprobs: Sequence[Any], source: Source, *, what: str = "token_ids") -> tuple[Int32, Float32]:
    """Ids and the log-probability of each."""
    if not ids:
        raise missing_ids(source, what)
    tokens = int32(ids, source)
    if len(tokens) != len(logprobs):
        raise misaligned(source, f"it gave {len(tokens)} {what} but {len(logprobs)} log-probabilities")
    return tokens, _finite(logprobs, source)


def int32(ids: Any, source: Source) -> Int32:
    try:
        # Unlike numpy, an array of C integers takes no fraction for a whole number; it is faster, too.
        return np.frombuffer(array("i", ids), np.int32)
    except (TypeError, ValueError, OverflowError):
        raise malformed(source, f"token ids are not 32-bit integers but {ids!r:.60}") from None


def _finite(logprobs: Sequence[Any], source: Source) -> Float32:
    """A NaN travels as null, so both are the same fault."""
    try:
        values = np.array(logprobs, np.float32)
    except (TypeError, ValueError):
        raise malformed(source, "log-probabilities are not numbers") from None
    if not np.isfinite(values).all():
        where = int(np.argmin(np.isfinite(values)))
        message = f"{source.path}: log-probability {where} is {logprobs[where]}; the weights or the logits are broken."
        raise EngineError(message, fault="not_finite")
    return values


def finish(reason: Any, source: Source, why: str = "") -> FinishReason:
    if reason in (None, "abort"):
        message = f"The engine aborted the answer to {source.path}{why and f' ({why})'}."
        raise EngineError(message, fault="aborted", status=503, retry_after=1.0)
    return "length" if reason == "length" else "stop"
