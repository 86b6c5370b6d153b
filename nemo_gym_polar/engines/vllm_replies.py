# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading vLLM's replies: exact tokens or an `EngineError` that says what is missing and why that usually happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.chat import FinishReason
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError, Sampled
from nemo_gym_polar.engines.replicas import Reply
from nemo_gym_polar.tokens import VersionSpan

_OVERFLOW_MARKS = ("context length", "max_model_len", "maximum model length", "context window")
_NO_IDS = "a router in between may strip them, or the server is older than `return_token_ids`"


def decoded(reply: Reply, path: str) -> dict[str, Any]:
    """The JSON object of a 200; any other status becomes the error that a harness should see."""
    if reply.status != 200:
        raise _refused(reply, path)
    try:
        value = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        raise _malformed(path, f"it is not JSON: {reply.body[:80]!r}") from None
    if not isinstance(value, dict):
        raise _malformed(path, "it is not an object")
    return value


def _refused(reply: Reply, path: str) -> EngineError:
    said = reply.body[:300].decode("utf-8", "replace")
    message = f"The engine answered {path} with {reply.status}: {said}"
    if reply.status in (429, 503):
        return EngineError(message, fault="overloaded", status=reply.status, retry_after=reply.retry_after)
    if reply.status == 400 and any(mark in said for mark in _OVERFLOW_MARKS):
        return ContextOverflowError(message)
    return EngineError(message, status=400 if reply.status in (400, 422) else 502)


def _malformed(path: str, why: str) -> EngineError:
    return EngineError(f"The engine's reply to {path} can't be read: {why}.", fault="malformed")


def cached(answer: Mapping[str, Any]) -> int | None:
    """Prompt tokens that came from the prefix cache, where the server counts them."""
    details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
    tokens = details.get("cached_tokens")
    return tokens if isinstance(tokens, int) else None


def count(reply: Reply, path: str) -> int:
    """`/tokenize`."""
    tokens = decoded(reply, path).get("count")
    if not isinstance(tokens, int):
        raise _malformed(path, "it has no count")
    return tokens


def choice(reply: Reply, path: str) -> dict[str, Any]:
    choices = decoded(reply, path).get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _malformed(path, "it has no choices")
    first: dict[str, Any] = choices[0]
    return first


def generated(choice: dict[str, Any], path: str) -> Sampled:
    """`/inference/v1/generate`: ids stand in the choice and again beside each log-probability."""
    content = _content(choice, path)
    sampled = _sampled(choice, [entry.get("logprob") for entry in content], path)
    beside = [entry.get("token_id") for entry in content]
    if None not in beside and beside != choice["token_ids"]:
        raise EngineError(f"{path}: log-probabilities belong to other tokens than token_ids.", fault="misaligned")
    return sampled


def chatted(choice: dict[str, Any], path: str) -> Sampled:
    """`/v1/chat/completions`."""
    return _sampled(choice, [entry.get("logprob") for entry in _content(choice, path)], path)


def completed(choice: dict[str, Any], path: str) -> Sampled:
    """`/v1/completions`."""
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if not isinstance(logprobs, list):
        raise _no_logprobs(path)
    return _sampled(choice, logprobs, path)


def prompt_ids(answer: dict[str, Any], choice: dict[str, Any], path: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The prompt's ids, at the top level (vLLM) or in the choice (SGLang)."""
    ids = answer.get("prompt_token_ids") or choice.get("prompt_token_ids")
    if not ids:
        raise EngineError(f"{path} gave no prompt_token_ids: {_NO_IDS}.", fault="no_ids")
    return _ids(ids, path)


def _content(choice: dict[str, Any], path: str) -> list[dict[str, Any]]:
    content = (choice.get("logprobs") or {}).get("content")
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise _no_logprobs(path)
    return content


def _no_logprobs(path: str) -> EngineError:
    return EngineError(f"{path} gave no log-probabilities: a router in between may strip them.", fault="no_logprobs")


def _sampled(choice: dict[str, Any], logprobs: Sequence[Any], path: str) -> Sampled:
    ids = choice.get("token_ids")
    if not ids:
        raise EngineError(f"{path} gave no token_ids: {_NO_IDS}.", fault="no_ids")
    if len(ids) != len(logprobs):
        message = f"{path} gave {len(ids)} token_ids but {len(logprobs)} log-probabilities."
        raise EngineError(message, fault="misaligned")
    finish = _finish(choice, path)
    stop = choice.get("stop_reason")
    return Sampled(
        _ids(ids, path),
        _finite(logprobs, path),
        finish,
        _versions(choice, len(ids), path),
        stop=stop if isinstance(stop, str) else None,
    )


def _ids(ids: Any, path: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    try:
        return np.array(ids, np.int32)
    except (TypeError, ValueError, OverflowError):
        raise _malformed(path, "token ids are not 32-bit integers") from None


def _finite(logprobs: Sequence[Any], path: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A NaN travels as null, so both are the same fault."""
    try:
        values = np.array(logprobs, np.float32)
    except (TypeError, ValueError):
        raise _malformed(path, "log-probabilities are not numbers") from None
    if not np.isfinite(values).all():
        where = int(np.argmin(np.isfinite(values)))
        message = f"{path}: log-probability {where} is {logprobs[where]}; the weights or the logits are broken."
        raise EngineError(message, fault="not_finite")
    return values


def _finish(choice: dict[str, Any], path: str) -> FinishReason:
    reason = choice.get("finish_reason")
    if reason in (None, "abort"):
        raise EngineError(f"The engine aborted the answer to {path}.", fault="aborted", status=503, retry_after=1.0)
    return "length" if reason == "length" else "stop"


def _versions(choice: dict[str, Any], length: int, path: str) -> tuple[VersionSpan, ...]:
    spans = choice.get("weight_versions")
    if not spans:
        return ()
    try:
        versions = tuple([VersionSpan(str(span["version"]), int(span["start"]), int(span["end"])) for span in spans])
    except (TypeError, KeyError, ValueError):
        raise _malformed(path, f"weight_versions is {spans!r:.80}") from None
    edges = [0, *[span.end for span in versions]]
    if [span.start for span in versions] != edges[:-1] or edges[-1] != length:
        raise EngineError(f"{path}: weight_versions {spans!r:.80} do not cover {length} tokens.", fault="misaligned")
    return versions
