# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`/v1/completions`: prompts as text or token ids, with vLLM's `return_token_ids`, `echo` and `prompt_logprobs`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields, is_token_list
from nemo_gym_polar.policy.api.parameters import answer_room, count_of_choices, count_of_logprobs, sampling_params
from nemo_gym_polar.policy.api.replies import (
    JSONObject,
    event_stream,
    finish_all,
    json_response,
    new_id,
    prompt_logprobs_of,
    usage_of,
    watch_growth,
)
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.sampling import Choice
from nemo_gym_polar.policy.sequence import SampledSequence

_DEFAULT_LENGTH = 16  # OpenAI's


@dataclass(frozen=True, slots=True)
class _Call:
    service: PolicyService
    prompts: list[list[int]]
    sequences: list[SampledSequence]
    logprobs: int | None
    echo: bool
    with_ids: bool
    names_as_ids: bool
    id: str = field(default_factory=lambda: new_id("cmpl"))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def usage(self) -> JSONObject:
        return usage_of(self.sequences, sum(len(prompt) for prompt in self.prompts))


async def completions(service: PolicyService, request: Request) -> Response:
    fields = await Fields.read(request)
    call = _parse(service, fields)
    if fields.flag("stream"):
        if call.echo:
            raise ApiError("echo=true is not supported with stream=true; leave one of them out.", param="echo")
        return event_stream(_events(call, with_usage=fields.section("stream_options").flag("include_usage")))
    await finish_all(service, request, call.sequences)
    choices = [_whole(call, index) for index in range(len(call.sequences))]
    return json_response(_envelope(call, choices) | {"usage": call.usage})


def _parse(service: PolicyService, fields: Fields) -> _Call:
    service.check_model(fields)
    fields.refuse("response_format", {"type": "text"}, remedy="leave it out: constrained sampling is not the policy's")
    prompts = _prompts(service, fields)
    logprobs = count_of_logprobs(fields, "logprobs")
    echo = fields.flag("echo")
    scored = count_of_logprobs(fields, "prompt_logprobs")
    count, sequences = count_of_choices(fields), []
    for prompt in prompts:
        room = answer_room(
            fields,
            ("max_tokens", "max_completion_tokens"),
            prompt=len(prompt),
            limit=service.limit,
            default=min(_DEFAULT_LENGTH, max(1, service.limit - len(prompt))),
        )
        params = sampling_params(fields, max_tokens=room, top_logprobs=logprobs or 0, prompt_logprobs=scored)
        if echo and logprobs is not None and scored is None:
            params = replace(params, prompt_logprobs=logprobs)
        skip_special = fields.flag("skip_special_tokens", default=True)
        sequences += service.sequences(prompt, params, count, skip_special=skip_special)
    return _Call(
        service,
        prompts,
        sequences,
        logprobs,
        echo,
        fields.flag("return_token_ids"),
        fields.flag("return_tokens_as_token_ids"),
    )


def _prompts(service: PolicyService, fields: Fields) -> list[list[int]]:
    """A text, token ids, or an array of either."""
    value, vocab = fields.get("prompt"), service.shape.vocab
    alone = isinstance(value, str) or (isinstance(value, list) and bool(value) and isinstance(value[0], int))
    many = [value] if alone else value
    if not isinstance(many, list) or not many:
        raise fields.wrong("prompt", "text, an array of token ids, or an array of these")
    prompts = [service.tokenizer.encode(item) if isinstance(item, str) else item for item in many]
    if not all(prompt and is_token_list(prompt, vocab) for prompt in prompts):
        raise fields.wrong("prompt", f"text or token ids from 0 to {vocab - 1}, none of them empty")
    return prompts


async def _events(call: _Call, *, with_usage: bool) -> AsyncGenerator[JSONObject]:
    async with aclosing(watch_growth(call.service.engine, call.sequences)) as growths:
        async for growth in growths:
            index = growth.index
            choice = _choice(call, index, growth.text, growth.choices, growth.finish_reason, growth.offset)
            yield _envelope(call, [choice | (_prompt_ids(call, index) if growth.start == 0 else {})])
    if with_usage:
        yield _envelope(call, []) | {"usage": call.usage}


def _envelope(call: _Call, choices: list[JSONObject]) -> JSONObject:
    return {
        "id": call.id,
        "object": "text_completion",
        "created": call.created,
        "model": call.service.name,
        "choices": choices,
    }


def _prompt_of(call: _Call, index: int) -> list[int]:
    return call.prompts[index * len(call.prompts) // len(call.sequences)]


def _prompt_ids(call: _Call, index: int) -> JSONObject:
    return {"prompt_token_ids": _prompt_of(call, index) if call.with_ids else None}


def _whole(call: _Call, index: int) -> JSONObject:
    sequence = call.sequences[index]
    choices: Sequence[Choice | int] = sequence.choices
    text = sequence.text
    if call.echo:
        prompt = _prompt_of(call, index)
        text = call.service.tokenizer.decode(prompt, skip_special_tokens=True) + text
        choices = [prompt[0], *(sequence.prompt_choices or prompt[1:]), *sequence.choices]
    choice = _choice(call, index, text, choices, sequence.finish_reason, 0)
    choice["token_ids"] = [item.token for item in sequence.choices] if call.with_ids else None
    return (
        choice | _prompt_ids(call, index) | {"prompt_logprobs": prompt_logprobs_of(sequence, call.service.vocabulary)}
    )


def _choice(
    call: _Call, index: int, text: str, choices: Sequence[Choice | int], finish_reason: str | None, offset: int
) -> JSONObject:
    sequence = call.sequences[index]
    return {
        "index": index,
        "text": text,
        "logprobs": None if call.logprobs is None else _logprobs(call, choices, offset),
        "finish_reason": finish_reason,
        "stop_reason": sequence.stop_reason,
        "token_ids": [item if isinstance(item, int) else item.token for item in choices] if call.with_ids else None,
    }


def _logprobs(call: _Call, choices: Sequence[Choice | int], offset: int) -> JSONObject:
    """Parallel arrays. A bare token id stands for a token that nothing was predicted for."""
    tokens, logprobs, tops, offsets = [], [], [], []
    for item in choices:
        token = item if isinstance(item, int) else item.token
        tokens.append(_name(call, token))
        logprobs.append(None if isinstance(item, int) else item.logprob)
        tops.append(None if isinstance(item, int) else {_name(call, id_): value for id_, value in item.top})
        offsets.append(offset)
        offset += len(call.service.vocabulary.text_of(token))
    return {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets}


def _name(call: _Call, token: int) -> str:
    return f"token_id:{token}" if call.names_as_ids else call.service.vocabulary.text_of(token)
