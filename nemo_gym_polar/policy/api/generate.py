# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`/inference/v1/generate`: tokens in, tokens out, with the weights each was sampled under."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields
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


@dataclass(frozen=True, slots=True)
class _Call:
    service: PolicyService
    id: str
    prompt: list[int]
    sequences: list[SampledSequence]
    with_logprobs: bool
    with_text: bool
    with_prompt: bool


async def generate(service: PolicyService, request: Request) -> Response:
    fields = await Fields.read(request)
    call = _parse(service, fields)
    if fields.flag("stream"):
        return event_stream(_events(call))
    await finish_all(service, request, call.sequences)
    choices = [
        _choice(call, index, sequence.choices, sequence.finish_reason) for index, sequence in enumerate(call.sequences)
    ]
    answer = _envelope(call, choices) | {
        "usage": usage_of(call.sequences, len(call.prompt)),
        "prompt_logprobs": prompt_logprobs_of(call.sequences[0], service.vocabulary),
    }
    return json_response(answer | ({"prompt_token_ids": call.prompt} if call.with_prompt else {}))


def _parse(service: PolicyService, fields: Fields) -> _Call:
    service.check_model(fields)
    prompt = fields.tokens("token_ids", service.shape.vocab)
    if not prompt:
        raise ApiError("token_ids=[] is empty; give at least one token.", param="token_ids")
    asked = fields.section("sampling_params")
    logprobs = count_of_logprobs(asked, "logprobs")
    params = sampling_params(
        asked,
        max_tokens=answer_room(asked, ("max_tokens",), prompt=len(prompt), limit=service.limit),
        top_logprobs=logprobs or 0,
        prompt_logprobs=count_of_logprobs(asked, "prompt_logprobs"),
    )
    mode = fields.text("output_mode", "tokens")
    if mode not in ("tokens", "text"):
        raise fields.wrong("output_mode", "'tokens' or 'text'")
    return _Call(
        service,
        fields.text("request_id") or new_id("gen"),
        prompt,
        service.sequences(prompt, params, count_of_choices(asked), skip_special=True),
        with_logprobs=logprobs is not None,
        with_text=mode == "text",
        with_prompt=fields.flag("return_token_ids"),
    )


async def _events(call: _Call) -> AsyncGenerator[JSONObject]:
    async with aclosing(watch_growth(call.service.engine, call.sequences)) as growths:
        async for growth in growths:
            yield _envelope(call, [_choice(call, growth.index, growth.choices, growth.finish_reason)])
    yield _envelope(call, []) | {"usage": usage_of(call.sequences, len(call.prompt))}


def _envelope(call: _Call, choices: list[JSONObject]) -> JSONObject:
    return {"request_id": call.id, "model": call.service.name, "choices": choices}


def _choice(call: _Call, index: int, choices: Sequence[Choice], finish_reason: str | None) -> JSONObject:
    """Tokens of answer `index`. The version spans are those of the whole answer so far."""
    sequence = call.sequences[index]
    spans = [{"version": span.version, "start": span.start, "end": span.end} for span in sequence.versions]
    answer: JSONObject = {
        "index": index,
        "token_ids": [choice.token for choice in choices],
        "logprobs": {"content": [_logprob(choice) for choice in choices]} if call.with_logprobs else None,
        "finish_reason": finish_reason,
        "stop_reason": sequence.stop_reason,
        "weight_versions": spans,
    }
    return answer | ({"text": sequence.view.text} if call.with_text else {})


def _logprob(choice: Choice) -> JSONObject:
    top = [{"token_id": token, "logprob": logprob} for token, logprob in choice.top]
    return {"token_id": choice.token, "logprob": choice.logprob, "rank": choice.rank, "top_logprobs": top}
