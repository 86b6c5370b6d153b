# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading what vLLM answers to prompts of token ids: exact tokens or an `EngineError` that says what is missing."""

from __future__ import annotations

from typing import Any

from nemo_gym_polar.engines import replies
from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.tokens import Float32, Int32, VersionSpan


def generated(choice: dict[str, Any], source: Source) -> Sampled:
    """`/inference/v1/generate`: ids stand in the choice and again beside each log-probability."""
    content = (choice.get("logprobs") or {}).get("content")
    if not isinstance(content, list) or set(map(type, content)) - {dict}:
        raise replies.missing_logprobs(source)
    sampled = _sampled(choice, replies.column(content, "logprob"), source)
    beside = replies.column(content, "token_id")
    if beside != choice["token_ids"] and None not in beside:
        raise replies.misaligned(source, "log-probabilities belong to other tokens than token_ids")
    return sampled


def completed(choice: dict[str, Any], source: Source) -> Sampled:
    """`/v1/completions`."""
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if not isinstance(logprobs, list):
        raise replies.missing_logprobs(source)
    return _sampled(choice, logprobs, source)


def scored(choice: dict[str, Any], tokens: Int32, source: Source) -> Float32:
    """`prompt_logprobs`: null for the first token, then an object by token id for each; 0 stands for the first."""
    entries = choice.get("prompt_logprobs")
    if not isinstance(entries, list):
        raise replies.missing_logprobs(source)
    if len(entries) != len(tokens):
        raise replies.misaligned(source, f"it gave {len(entries)} prompt_logprobs for {len(tokens)} tokens")
    ids = tokens.tolist()
    values = [_of_token(token, entry, source) for token, entry in zip(ids[1:], entries[1:], strict=True)]
    return replies.paired(ids, [0.0, *values], source)[1]


def _of_token(token: int, entry: Any, source: Source) -> Any:
    try:
        return entry[str(token)]["logprob"]
    except (KeyError, TypeError):
        raise replies.misaligned(source, f"prompt_logprobs has {entry!r:.60} where token {token} was sent") from None


def _sampled(choice: dict[str, Any], logprobs: list[Any], source: Source) -> Sampled:
    ids, values = replies.paired(choice.get("token_ids"), logprobs, source)
    finish = replies.finish(choice.get("finish_reason"), source)
    stop = choice.get("stop_reason")
    versions = _versions(choice, len(ids), source)
    return Sampled(ids, values, finish, versions, stop=stop if isinstance(stop, str) else None)


def _versions(choice: dict[str, Any], length: int, source: Source) -> tuple[VersionSpan, ...]:
    spans = choice.get("weight_versions")
    if not spans:
        return ()
    try:
        versions = tuple([VersionSpan(str(span["version"]), int(span["start"]), int(span["end"])) for span in spans])
    except (TypeError, KeyError, ValueError):
        raise replies.malformed(source, f"weight_versions is {spans!r:.80}") from None
    edges = [0, *[span.end for span in versions]]
    if [span.start for span in versions] != edges[:-1] or edges[-1] != length:
        raise replies.misaligned(source, f"weight_versions {spans!r:.80} do not cover {length} tokens")
    return versions
