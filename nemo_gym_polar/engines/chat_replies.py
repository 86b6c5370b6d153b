# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading chat completions that tell their tokens, wherever the server puts them.

vLLM has the prompt's ids at the top level and the answer's in the choice; SGLang both in the choice, or both under
`sglext`, and the answer's again in `meta_info`; NeMo RL both in the message. Whatever is said twice must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nemo_gym_polar.engines import replies
from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.tokens import Float32, Int32, VersionSpan

_ID_MARK = "token_id:"


def read(answer: dict[str, Any], choice: dict[str, Any], source: Source) -> tuple[Int32, Sampled]:
    """The prompt's ids and what was sampled after them."""
    finish = replies.finish(choice.get("finish_reason"), source)
    ids, logprobs = _answer(answer, choice, source)
    versions, stop = _versions(answer, choice, len(ids)), _stop(choice)
    cached = _cached(answer, choice)
    sampled = Sampled(ids, logprobs, finish, versions, stop, cached, versions_by_token=False)
    return _prompt(answer, choice, source), sampled


def _prompt(answer: dict[str, Any], choice: dict[str, Any], source: Source) -> Int32:
    holders = (answer, choice, _part(choice, "message"))
    found = [ids for holder in holders if (ids := holder.get("prompt_token_ids"))]
    if ids := _part(answer, "sglext").get("input_ids"):
        found.append(ids)
    if not found:
        raise replies.missing_ids(source, "prompt_token_ids")
    return replies.int32(found[0], source)


def _answer(answer: dict[str, Any], choice: dict[str, Any], source: Source) -> tuple[Int32, Float32]:
    triples = _triples(choice, source)
    content = _content(choice)
    accounts = list(_accounts(answer, choice, triples, content))
    logprobs = _logprobs(choice, triples, content, source)
    ids, values = replies.paired(accounts[0] if accounts else None, logprobs, source)
    if any(other != accounts[0] for other in accounts[1:]):
        raise replies.misaligned(source, "log-probabilities belong to other tokens than the ids")
    return ids, values


def _accounts(
    answer: dict[str, Any], choice: dict[str, Any], triples: Sequence[Any] | None, content: Sequence[Any] | None
) -> Iterator[list[int]]:
    """Every place that names the sampled ids."""
    outputs = _part(answer, "sglext").get("output_ids")
    places = (
        choice.get("token_ids"),
        _part(choice, "message").get("generation_token_ids"),
        outputs[0] if isinstance(outputs, list) and outputs else None,
        [triple[1] for triple in triples or ()],
        _named(content or ()),
    )
    yield from (place for place in places if place)


def _named(content: Sequence[Any]) -> list[int]:
    """Ids that are written as the tokens' texts, `token_id:17`; none where a text is a text."""
    if not content or not str(content[0].get("token")).startswith(_ID_MARK):
        return []
    texts = replies.column(content, "token")
    if not all(isinstance(text, str) and text.startswith(_ID_MARK) for text in texts):
        return []
    numbers = [str(text).removeprefix(_ID_MARK) for text in texts]
    return [int(number) for number in numbers] if all(number.isdecimal() for number in numbers) else []


def _logprobs(
    choice: dict[str, Any], triples: Sequence[Any] | None, content: Sequence[Any] | None, source: Source
) -> Sequence[Any]:
    said = _part(choice, "message").get("generation_log_probs")
    if isinstance(said, list):
        return said
    if triples is not None:
        return [triple[0] for triple in triples]
    if content is not None:
        return replies.column(content, "logprob")
    raise replies.missing_logprobs(source)


def _triples(choice: dict[str, Any], source: Source) -> Sequence[Any] | None:
    return triples(_part(choice, "meta_info"), source)


def triples(meta: dict[str, Any], source: Source) -> Sequence[Any] | None:
    """SGLang's (log-probability, id, text) of each sampled token."""
    found = meta.get("output_token_logprobs")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, list) and len(one) > 1 for one in found):
        raise replies.malformed(source, f"output_token_logprobs is {found!r:.80}")
    return found


def _content(choice: dict[str, Any]) -> Sequence[Any] | None:
    content = _part(choice, "logprobs").get("content")
    return content if isinstance(content, list) and not set(map(type, content)) - {dict} else None


def _versions(answer: dict[str, Any], choice: dict[str, Any], length: int) -> tuple[VersionSpan, ...]:
    version = _part(choice, "meta_info").get("weight_version") or _part(answer, "metadata").get("weight_version")
    return () if version is None else (VersionSpan(str(version), 0, length),)


def _stop(choice: dict[str, Any]) -> str | None:
    stop = choice.get("stop_reason") or choice.get("matched_stop")
    return stop if isinstance(stop, str) else None


def _cached(answer: dict[str, Any], choice: dict[str, Any]) -> int | None:
    tokens = replies.cached(answer.get("usage"))
    own = _part(choice, "meta_info").get("cached_tokens")
    return own if tokens is None and isinstance(own, int) else tokens


def _part(holder: dict[str, Any], name: str) -> dict[str, Any]:
    part = holder.get(name)
    return part if isinstance(part, dict) else {}
