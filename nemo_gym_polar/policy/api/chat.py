# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`/v1/chat/completions`, with vLLM's `return_token_ids`; the answer's ids and logprobs are complete, end token too."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar.policy.api.answer import Answer, read_answer
from nemo_gym_polar.policy.api.conversation import read_tools, render_prompt
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.api.live_answer import LiveAnswer
from nemo_gym_polar.policy.api.parameters import answer_room, count_of_choices, count_of_logprobs, sampling_params
from nemo_gym_polar.policy.api.replies import (
    Growth,
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
    prompt: list[int]
    tools: list[dict[str, Any]]
    sequences: list[SampledSequence]
    with_logprobs: bool
    with_ids: bool
    names_as_ids: bool
    id: str = field(default_factory=lambda: new_id("chatcmpl"))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def usage(self) -> JSONObject:
        return usage_of(self.sequences, len(self.prompt))


async def chat_completions(service: PolicyService, request: Request) -> Response:
    fields = await Fields.read(request)
    call = _parse(service, fields)
    if fields.flag("stream"):
        return event_stream(_events(call, with_usage=fields.section("stream_options").flag("include_usage")))
    await finish_all(service, request, call.sequences)
    choices = [_whole(call, index) for index in range(len(call.sequences))]
    answer = _envelope(call, "chat.completion", choices) | {
        "usage": call.usage,
        "prompt_logprobs": prompt_logprobs_of(call.sequences[0], service.vocabulary),
        "prompt_token_ids": call.prompt if call.with_ids else None,
    }
    return json_response(answer)


def _parse(service: PolicyService, fields: Fields) -> _Call:
    service.check_model(fields)
    fields.refuse("response_format", {"type": "text"}, remedy="leave it out: constrained sampling is not the policy's")
    fields.refuse("tool_choice", "auto", "none", remedy="use 'auto': forced calls are not the policy's")
    prompt = render_prompt(service, fields)
    with_logprobs = fields.flag("logprobs")
    top = count_of_logprobs(fields, "top_logprobs")
    room = answer_room(fields, ("max_completion_tokens", "max_tokens"), prompt=len(prompt), limit=service.limit)
    params = sampling_params(
        fields,
        max_tokens=room,
        top_logprobs=(top or 0) if with_logprobs else 0,
        prompt_logprobs=count_of_logprobs(fields, "prompt_logprobs"),
    )
    return _Call(
        service,
        prompt,
        [] if fields.get("tool_choice") == "none" else read_tools(fields),
        service.sequences(prompt, params, count_of_choices(fields), skip_special=False),
        with_logprobs,
        fields.flag("return_token_ids"),
        fields.flag("return_tokens_as_token_ids"),
    )


def _answer(call: _Call, index: int) -> Answer:
    sequence = call.sequences[index]
    return read_answer(
        call.service,
        [choice.token for choice in sequence.choices],
        prompt=call.prompt,
        tools=call.tools,
        stopped_at=sequence.stop_reason if isinstance(sequence.stop_reason, str) else None,
    )


def _whole(call: _Call, index: int) -> JSONObject:
    answer, sequence = _answer(call, index), call.sequences[index]
    choice = _choice(call, index, sequence.choices, _finish_reason(sequence.finish_reason, answer))
    return {**choice, "message": answer.message()}


def _finish_reason(reason: str | None, answer: Answer) -> str | None:
    return "tool_calls" if reason == "stop" and answer.tool_calls else reason


def _choice(call: _Call, index: int, choices: Sequence[Choice], finish_reason: str | None) -> JSONObject:
    return {
        "index": index,
        "logprobs": {"content": [_logprob(call, choice) for choice in choices]} if call.with_logprobs else None,
        "finish_reason": finish_reason,
        "stop_reason": call.sequences[index].stop_reason if finish_reason else None,
        "token_ids": [choice.token for choice in choices] if call.with_ids else None,
    }


def _logprob(call: _Call, choice: Choice) -> JSONObject:
    top = [_named(call, token, logprob) for token, logprob in choice.top]
    return _named(call, choice.token, choice.logprob) | {"top_logprobs": top}


def _named(call: _Call, token: int, logprob: float) -> JSONObject:
    vocabulary = call.service.vocabulary
    name = f"token_id:{token}" if call.names_as_ids else vocabulary.text_of(token)
    return {"token": name, "logprob": logprob, "bytes": list(vocabulary.bytes_of(token))}


def _envelope(call: _Call, kind: str, choices: list[JSONObject]) -> JSONObject:
    return {
        "id": call.id,
        "object": kind,
        "created": call.created,
        "model": call.service.name,
        "choices": choices,
    }


async def _events(call: _Call, *, with_usage: bool) -> AsyncGenerator[JSONObject]:
    """The prompt's ids stand in the first chunk; ids and logprobs of all chunks of a choice are those of its answer."""
    live = [_live_answer(call) for _ in call.sequences]
    delta = {"role": "assistant", "content": ""}
    opening = [{"index": index, "delta": delta, "logprobs": None, "finish_reason": None} for index in range(len(live))]
    first = _envelope(call, "chat.completion.chunk", opening)
    yield first | {"prompt_token_ids": call.prompt if call.with_ids else None}
    async with aclosing(watch_growth(call.service.engine, call.sequences)) as growths:
        async for growth in growths:
            yield _envelope(call, "chat.completion.chunk", [_chunk(call, growth, live[growth.index])])
    if with_usage:
        yield _envelope(call, "chat.completion.chunk", []) | {"usage": call.usage}


def _live_answer(call: _Call) -> LiveAnswer:
    marks = call.service.markers
    held = max((len(stop) for stop in call.sequences[0].params.stop), default=1) - 1
    return LiveAnswer(call.service.vocabulary, marks, reasoning_open=marks.reasoning_open(call.prompt), held=held)


def _chunk(call: _Call, growth: Growth, live: LiveAnswer) -> JSONObject:
    if growth.finish_reason is None:
        delta: JSONObject = dict(live.add([choice.token for choice in growth.choices]))
        return _choice(call, growth.index, growth.choices, None) | {"delta": delta}
    answer = _answer(call, growth.index)
    delta = dict(live.close(answer))
    if answer.tool_calls:
        delta["tool_calls"] = [{"index": number, **tool} for number, tool in enumerate(answer.tool_calls)]
    reason = _finish_reason(growth.finish_reason, answer)
    return _choice(call, growth.index, growth.choices, reason) | {"delta": delta}
