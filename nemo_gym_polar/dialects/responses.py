# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses API, as `openai`, Codex and others speak it.

Its parts: `responses_input` reads items, `responses_tools` declarations; `responses_answer` forms the response object,
`responses_events` its stream. Fields that are not used are not looked at. Tool arguments are passed on as the text
that was sampled, valid JSON or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from nemo_gym_polar import chat as canonical
from nemo_gym_polar.chat import Completion, Conversation, Message, Request, Sampling
from nemo_gym_polar.dialects import fields, openai_common, responses_events, responses_input, responses_tools
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.dialects.recall import Recall
from nemo_gym_polar.dialects.responses_answer import PREFIX, finished, is_cut, items, response

NAME: Final[canonical.Dialect] = "responses"
RESPONSE_ID_PREFIX: Final = PREFIX
CALL_ID_PREFIX: Final = "call_"
# Codex measures idleness between events, and a comment is none; what it does not know it passes over.
KEEP_ALIVE: Final = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'

_ROOT: Final = "/v1/responses"
_GENERATE = Endpoint("generate", ("POST",))
_COUNT = Endpoint("count", ("POST",))
_OPENING_EVENTS: Final = ("response.created", "response.in_progress")
_DEFAULTS: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}

error = openai_common.error
models = openai_common.models
model = openai_common.model
count = openai_common.count


def owns(target: Target) -> bool:
    return target.path == _ROOT or target.path.startswith(f"{_ROOT}/")


def endpoint(target: Target) -> Endpoint | None:
    if target.path == _ROOT:
        return _GENERATE
    name = target.path.removeprefix(f"{_ROOT}/")
    if not owns(target) or not name or "/" in name:
        return None
    return _COUNT if name == "input_tokens" else Endpoint("stored", ("GET", "DELETE"), id=name)


# -- requests


def parse(body: bytes, endpoint: Endpoint, hints: Mapping[str, str], recall: Recall | None = None) -> Request:
    recall = recall or Recall()
    asked = fields.body(body)
    _refuse_unsupported(asked)
    previous = fields.optional_text(asked.get("previous_response_id"), "previous_response_id")
    instructions = recall.value(_instructions, asked.get("instructions"))
    given = recall.history(responses_input.Input(), responses_input.items(asked.get("input"), "input"), "input")
    if not given.messages and previous is None:
        raise CallError("invalid_request", "'input' is empty; send a text or at least one item.", param="input")
    shown, hidden = responses_tools.split(recall.value(_tools, asked.get("tools")) + given.tools)
    return Request(
        dialect=NAME,
        model=_model_name(asked, endpoint),
        conversation=Conversation((*instructions, *given.messages), shown, hidden + tuple(given.found)),
        sampling=_sampling(asked),
        tool_choice=_tool_choice(asked.get("tool_choice")),
        stream=fields.optional_bool(asked.get("stream"), "stream"),
        previous=previous,
        instructions=len(instructions),
        stored=asked.get("store") is None or fields.optional_bool(asked["store"], "store"),
        echo=_echo(asked),
        hints=hints,
    )


def _refuse_unsupported(asked: Mapping[str, Any]) -> None:
    if fields.optional_bool(asked.get("background"), "background"):
        message = "'background': true is not offered here; leave it out and wait for the answer, or stream it."
        raise CallError("invalid_request", message, param="background")
    for name, remedy in (("conversation", "use 'previous_response_id'"), ("prompt", "send its text as 'input'")):
        if asked.get(name) is not None:
            raise CallError("invalid_request", f"'{name}' is not offered here; {remedy}.", param=name)


def _instructions(value: object) -> Sequence[Message]:
    """A text is one developer message; the API also takes a list of items."""
    if value is None or value == "":
        return ()
    listed = responses_input.items(value, "instructions", role="developer")
    return Recall().history(responses_input.Input(), listed, "instructions").messages


def _tools(value: object) -> list[responses_tools.Declared]:
    return responses_tools.declared(value, "tools")


def _model_name(asked: Mapping[str, Any], endpoint: Endpoint) -> str:
    if endpoint.kind == "count":
        return fields.optional_text(asked.get("model"), "model") or ""
    return fields.text(asked.get("model"), "model")


def _sampling(asked: Mapping[str, Any]) -> Sampling:
    return Sampling(
        temperature=fields.optional_number(asked.get("temperature"), "temperature"),
        top_p=fields.optional_number(asked.get("top_p"), "top_p"),
        max_tokens=fields.optional_integer(asked.get("max_output_tokens"), "max_output_tokens", minimum=1),
        schema=_schema(fields.mapping(asked.get("text") or {}, "text").get("format")),
    )


def _schema(value: object) -> Mapping[str, Any] | None:
    wanted = fields.mapping(value or {}, "text.format")
    match wanted.get("type"):
        case "json_object":
            return {}
        case "json_schema":
            return fields.mapping(wanted.get("schema") or {}, "text.format.schema")
    return None


def _tool_choice(value: object) -> str:
    """«auto», «none», «required», or «function:NAME»."""
    if value is None:
        return "auto"
    if not isinstance(value, dict):
        return fields.text(value, "tool_choice")
    if value.get("type") == "allowed_tools" and isinstance(value.get("mode"), str):
        return str(value["mode"])
    return f"function:{value['name']}" if isinstance(value.get("name"), str) else "auto"


def _echo(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """`fields` are repeated in the answer; `thinking` and `sealed` say in which form the harness reads thinking."""
    reasoning = fields.mapping(asked.get("reasoning") or {}, "reasoning")
    text = fields.mapping(asked.get("text") or {}, "text")
    include = fields.array([] if asked.get("include") is None else asked["include"], "include")
    repeated = {
        **{name: default if asked.get(name) is None else asked[name] for name, default in _DEFAULTS.items()},
        "reasoning": {"effort": None, "summary": None, **reasoning},
        "text": {"verbosity": "medium", **text, "format": text.get("format") or {"type": "text"}},
        "tools": responses_tools.echoed(asked.get("tools")),
    }
    thinking = "summary" if reasoning.get("summary") else "content"
    return {"fields": repeated, "thinking": thinking, "sealed": "reasoning.encrypted_content" in include}


# -- answers


def answer(completion: Completion, request: Request) -> bytes:
    return orjson.dumps(finished(completion, request, items(completion, request)))


def opening(response_id: str, created: int, request: Request) -> bytes:
    begun = {"response": response(response_id, created, request)}
    events = (responses_events.encoded(kind, begun, number) for number, kind in enumerate(_OPENING_EVENTS))
    return b"".join(events)


def stream(completion: Completion, request: Request) -> Iterable[bytes]:
    number = len(_OPENING_EVENTS)
    output = items(completion, request)
    for index, item in enumerate(output):
        for kind, said in responses_events.item_events(item, index):
            yield responses_events.encoded(kind, said, number)
            number += 1
    kind = "response.incomplete" if is_cut(completion) else "response.completed"
    yield responses_events.encoded(kind, {"response": finished(completion, request, output)}, number)


def deleted(response_id: str) -> bytes:
    return orjson.dumps({"id": response_id, "object": "response", "deleted": True})
