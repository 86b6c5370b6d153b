# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Google's generateContent API, as `google-genai`, Gemini CLI, Pi and OpenCode speak it.

The model is in the path, and so is whether the answer is streamed: as events with `alt=sse`, else as a JSON array.
Field names may be in camel case or in snake case. Tools that Google runs itself are left out: there is nobody here
to run them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from nemo_gym_polar import chat as canonical
from nemo_gym_polar.chat import Conversation, Request, Sampling, Tool
from nemo_gym_polar.dialects import fields
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.dialects.generate_content_answer import THOUGHTS, answer, opening, stream
from nemo_gym_polar.dialects.generate_content_history import History, contents, given, instruction
from nemo_gym_polar.dialects.google_schema import json_schema
from nemo_gym_polar.dialects.recall import Recall

__all__ = [
    "CALL_ID_PREFIX", "KEEP_ALIVE", "NAME", "RESPONSE_ID_PREFIX", "answer", "count", "endpoint", "error", "model",
    "models", "opening", "owns", "parse", "stream",
]  # fmt: skip

NAME: Final[canonical.Dialect] = "generate_content"
RESPONSE_ID_PREFIX: Final = ""
CALL_ID_PREFIX: Final = ""
KEEP_ALIVE: Final = b"\n"  # white space is all that Google's own clients pass over, between events and in an array
MAX_CANDIDATES: Final = 8

_PATH = re.compile(r"/(v1|v1beta|v1alpha)/(?:models/|(?=tunedModels/))([^:]+):(\w+)")
_LIST = re.compile(r"/(v1|v1beta|v1alpha)/(?:models|tunedModels)")
_ONE = re.compile(r"/(v1|v1beta|v1alpha)/(?:models/|(?=tunedModels/.))([^:]+)")
_RESOURCE = re.compile(r"/v1/(?:models|tunedModels|files|cachedContents|operations|batches)(?:/|$)")
_HEADERS = frozenset({"x-goog-api-key", "x-goog-api-client"})
_OWN_PREFIXES = ("/v1beta/", "/v1alpha/")
_STATUS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    426: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TYPE = "type.googleapis.com/google.rpc."


def owns(target: Target) -> bool:
    """OpenAI and Anthropic have resources of the same names below /v1; Google's clients are known by a header."""
    if target.path.startswith(_OWN_PREFIXES) or _PATH.fullmatch(target.path):
        return True
    return _RESOURCE.match(target.path) is not None and not _HEADERS.isdisjoint(target.headers)


def endpoint(target: Target) -> Endpoint | None:
    if match := _PATH.fullmatch(target.path):
        return _verb(match[3], match[2], target.query)
    if not owns(target):
        return None  # other providers list their models under the same path
    if _LIST.fullmatch(target.path):
        return Endpoint("models", ("GET", "HEAD"))
    if match := _ONE.fullmatch(target.path):
        return Endpoint("model", ("GET", "HEAD"), model=match[2])
    return None


def _verb(verb: str, model: str, query: str) -> Endpoint | None:
    match verb:
        case "generateContent":
            return Endpoint("generate", ("POST",), model=model, stream=False)
        case "streamGenerateContent":
            events = parse_qs(query).get("alt") == ["sse"]
            return Endpoint("generate", ("POST",), model=model, stream=True, array=not events)
        case "countTokens":
            return Endpoint("count", ("POST",), model=model)
    return None


# -- requests


def parse(body: bytes, endpoint: Endpoint, hints: Mapping[str, str], recall: Recall | None = None) -> Request:
    recall = recall or Recall()
    asked = fields.body(body)
    if endpoint.kind == "count" and (whole := given(asked, "generateContentRequest")) is not None:
        asked = fields.mapping(whole, "generateContentRequest")
    if not (told := given(asked, "contents")):
        raise CallError(
            "invalid_request", "GenerateContentRequest.contents: contents is not specified", param="contents"
        )
    if given(asked, "cachedContent"):
        message = "CachedContent not found; send the whole content with each request."
        raise CallError("invalid_request", message, param="cachedContent")
    config = fields.mapping(given(asked, "generationConfig") or {}, "generationConfig")
    history = recall.history(History(), contents(told), "contents")
    return Request(
        dialect=NAME,
        model=endpoint.model or "",
        conversation=Conversation(
            messages=(*instruction(given(asked, "systemInstruction")), *history.messages),
            tools=recall.value(_tools, given(asked, "tools")),
        ),
        sampling=_sampling(config),
        tool_choice=_tool_choice(given(asked, "toolConfig")),
        stream=endpoint.stream or False,
        array=endpoint.array,
        n=fields.optional_integer(
            given(config, "candidateCount"), "generationConfig.candidateCount", minimum=1, maximum=MAX_CANDIDATES
        )
        or 1,
        echo={THOUGHTS: _wants_thoughts(config)},
        hints=hints,
    )


def _wants_thoughts(config: Mapping[str, Any]) -> bool:
    path = "generationConfig.thinkingConfig"
    thinking = fields.mapping(given(config, "thinkingConfig") or {}, path)
    return fields.optional_bool(given(thinking, "includeThoughts"), f"{path}.includeThoughts")


def _tools(value: object) -> tuple[Tool, ...]:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return tuple([tool for i, item in enumerate(listed) for tool in _functions(item, f"tools[{i}]")])


def _functions(item: object, path: str) -> Iterator[Tool]:
    declared = given(fields.mapping(item, path), "functionDeclarations")
    path = f"{path}.functionDeclarations"
    for i, function in enumerate(fields.array(declared or [], path)):
        yield _tool(fields.mapping(function, f"{path}[{i}]"), f"{path}[{i}]")


def _tool(function: Mapping[str, Any], path: str) -> Tool:
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    if (schema := given(function, "parametersJsonSchema")) is not None:
        parameters = fields.mapping(schema, f"{path}.parametersJsonSchema")
    elif (schema := function.get("parameters")) is not None:
        parameters = json_schema(schema, f"{path}.parameters")
    return Tool(
        name=fields.text(function.get("name"), f"{path}.name"),
        description=fields.optional_text(function.get("description"), f"{path}.description") or "",
        parameters=parameters,
    )


def _tool_choice(value: object) -> str:
    path = "toolConfig.functionCallingConfig"
    config = fields.mapping(given(fields.mapping(value or {}, "toolConfig"), "functionCallingConfig") or {}, path)
    mode = fields.optional_text(config.get("mode"), f"{path}.mode") or "AUTO"
    allowed = fields.array(given(config, "allowedFunctionNames") or [], f"{path}.allowedFunctionNames")
    match mode.upper():
        case "NONE":
            return "none"
        case "ANY":
            return f"function:{allowed[0]}" if len(allowed) == 1 else "required"
    return "auto"


def _sampling(config: Mapping[str, Any]) -> Sampling:
    def path(name: str) -> tuple[Any, str]:
        return given(config, name), f"generationConfig.{name}"

    stop, where = path("stopSequences")
    return Sampling(
        temperature=fields.optional_number(*path("temperature")),
        top_p=fields.optional_number(*path("topP")),
        top_k=fields.optional_integer(*path("topK")),
        max_tokens=fields.optional_integer(*path("maxOutputTokens"), minimum=1),
        stop=tuple([fields.text(item, f"{where}[{i}]") for i, item in enumerate(fields.array(stop or [], where))]),
        seed=fields.optional_integer(*path("seed")),
        schema=_schema(config),
    )


def _schema(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    path = "generationConfig.responseJsonSchema"
    for name in ("responseJsonSchema", "_responseJsonSchema"):
        if (schema := given(config, name)) is not None:
            return fields.mapping(schema, path)
    if (schema := given(config, "responseSchema")) is not None:
        return json_schema(schema, "generationConfig.responseSchema")
    kind = fields.optional_text(given(config, "responseMimeType"), "generationConfig.responseMimeType")
    return {} if kind == "application/json" else None


# -- models, counts and errors


def count(tokens: int) -> bytes:
    details = [{"modality": "TEXT", "tokenCount": tokens}]
    return orjson.dumps({"totalTokens": tokens, "promptTokensDetails": details})


def models(names: Sequence[str]) -> bytes:
    return orjson.dumps({"models": [_model(name) for name in names]})


def model(name: str) -> bytes:
    return orjson.dumps(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {
        "name": name if name.startswith("tunedModels/") else f"models/{name}",
        "version": "001",
        "displayName": name,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def error(failure: CallError) -> bytes:
    status = _STATUS.get(failure.status, "UNKNOWN")
    said = {"code": failure.status, "message": _message(failure), "status": status}
    details = list(_details(failure))
    return orjson.dumps({"error": {**said, "details": details} if details else said})


def _message(failure: CallError) -> str:
    if failure.kind == "context_overflow" and failure.asked is not None and failure.limit is not None:
        exceeded = f"exceeds the maximum number of tokens allowed ({failure.limit})."
        return f"The input token count ({failure.asked}) {exceeded}"
    return failure.message


def _details(failure: CallError) -> Iterator[dict[str, Any]]:
    if failure.retry_after is not None:
        yield {"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{failure.retry_after:g}s"}
    if failure.kind == "invalid_request" and failure.param:
        violation = {"field": failure.param, "description": failure.message}
        yield {"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]}
