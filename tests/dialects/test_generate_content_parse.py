# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a generateContent request says, in every spelling that Google's API takes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Image, Message, Opaque, Reasoning, Request, Sampling, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.dialects import generate_content, registry
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.dialects.sealed import seal

GENERATE = Endpoint("generate", ("POST",), model="m", stream=True)
COUNT = Endpoint("count", ("POST",), model="m")
HELLO = [{"role": "user", "parts": [{"text": "Hi"}]}]


def parsed(endpoint: Endpoint = GENERATE, **body: Any) -> Request:
    return generate_content.parse(orjson.dumps({"contents": HELLO, **body}), endpoint, {})


def history(*contents: Any) -> tuple[Message, ...]:
    return parsed(contents=list(contents)).conversation.messages


def model(*parts: dict[str, Any]) -> tuple[Any, ...]:
    (message,) = history({"role": "model", "parts": list(parts)})
    assert message.role == "assistant"
    return message.parts


KEY = {"x-goog-api-key": "k"}
PATHS: list[tuple[str, str, dict[str, str], str | None, str]] = [
    ("/v1beta/models/gemini-9:generateContent", "", {}, "generate", "generate_content"),
    ("/v1alpha/models/a/b:streamGenerateContent", "alt=sse", {}, "generate", "generate_content"),
    ("/v1/models/m:countTokens", "", {}, "count", "generate_content"),
    ("/v1beta/tunedModels/t:generateContent", "", {}, "generate", "generate_content"),
    ("/v1beta/models", "pageSize=50", {}, "models", "generate_content"),
    ("/v1beta/models/m", "", {}, "model", "generate_content"),
    ("/v1beta/tunedModels/m", "", {}, "model", "generate_content"),
    ("/v1/models", "", KEY, "models", "generate_content"),
    ("/v1/models", "", {}, "models", "chat"),
    ("/v1/models/m", "", {}, "model", "chat"),
    ("/v1beta/models/m:embedContent", "", {}, None, "generate_content"),
    ("/v1/models/m:batchEmbedContents", "", KEY, None, "generate_content"),
    ("/v1/models/ft:m:org", "", {}, "model", "chat"),
    ("/v1beta/files", "", {}, None, "generate_content"),
    ("/v1beta/models/:generateContent", "", {}, None, "generate_content"),
]


@pytest.mark.parametrize(("path", "query", "headers", "kind", "name"), PATHS)
def test_paths(path: str, query: str, headers: dict[str, str], kind: str | None, name: str) -> None:
    dialect, endpoint = registry.find(Target(path, query, headers))
    assert ((endpoint and endpoint.kind), dialect.NAME) == (kind, name)


@pytest.mark.parametrize(
    ("verb", "query", "stream", "array"),
    [
        ("generateContent", "", False, False),
        ("streamGenerateContent", "alt=sse&key=k", True, False),
        ("streamGenerateContent", "", True, True),
        ("streamGenerateContent", "alt=json", True, True),
    ],
)
def test_the_path_says_the_model_and_whether_to_stream(verb: str, query: str, stream: bool, array: bool) -> None:
    endpoint = generate_content.endpoint(Target(f"/v1beta/models/gemini-9:{verb}", query))
    assert endpoint is not None
    request = parsed(endpoint)
    assert (request.model, request.stream, request.array) == ("gemini-9", stream, array)
    tuned = generate_content.endpoint(Target(f"/v1beta/tunedModels/t:{verb}"))
    assert tuned is not None and tuned.model == "tunedModels/t"


@pytest.mark.parametrize(
    "contents",
    ["Hi", ["Hi"], {"parts": [{"text": "Hi"}]}, [{"text": "Hi"}], [{"role": "user", "parts": {"text": "Hi"}}], HELLO],
)
def test_contents_of_any_shape(contents: Any) -> None:
    assert parsed(contents=contents).conversation.messages == (Message("user", (Text("Hi"),)),)


@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
@pytest.mark.parametrize("value", ["Be brief.", {"parts": [{"text": "Be brief."}]}, [{"text": "Be brief."}]])
def test_the_system_instruction_comes_first(name: str, value: Any) -> None:
    system, _ = parsed(**{name: value}).conversation.messages
    assert system == Message("system", (Text("Be brief."),))


def test_an_empty_system_instruction_is_none() -> None:
    assert len(parsed(systemInstruction={"parts": []}).conversation.messages) == 1


def test_calls_and_results() -> None:
    call, result = history(
        {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "ls", "args": {"path": "/"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "ls", "response": {"output": "a"}}}]},
    )
    assert call.parts == (ToolCall("1", "ls", '{"path":"/"}'),)
    assert result == Message("tool", (ToolResult("1", (Text("a"),), name="ls"),))


@pytest.mark.parametrize(
    ("response", "said", "is_error"),
    [
        ({"output": "a"}, "a", False),
        ({"result": [1]}, "[1]", False),
        ({"content": "a"}, "a", False),
        ({"error": "no"}, "no", True),
        ({"temperature": 20}, '{"temperature":20}', False),
        ({"output": "a", "exit": 0}, '{"output":"a","exit":0}', False),
    ],
)
def test_responses_say_one_thing_or_all(response: Any, said: str, is_error: bool) -> None:
    (message,) = history({"parts": [{"functionResponse": {"name": "f", "response": response}}]})
    assert message.parts == (ToolResult("", (Text(said),), is_error, "f"),)


def test_results_without_ids_find_their_calls_by_name_and_order() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"function_call": {"name": name, "args": {}}}

    def answer(name: str) -> dict[str, Any]:
        return {"function_response": {"name": name, "response": {}}}

    turns = history(
        {"role": "model", "parts": [call("a"), call("b"), call("a")]},
        {"role": "function", "parts": [answer("b"), answer("a"), answer("a")]},
        {"role": "model", "parts": [call("a")]},
        {"role": "user", "parts": [answer("renamed")]},
    )
    first, second, third = (made.id for made in turns[0].tool_calls)
    assert len({first, second, third}) == 3
    assert [part.call_id for part in turns[1].parts if isinstance(part, ToolResult)] == [second, first, third]
    (late,) = turns[3].parts
    assert isinstance(late, ToolResult) and late.call_id == turns[2].tool_calls[0].id


def test_results_and_words_of_one_content_are_told_apart() -> None:
    result = {"functionResponse": {"name": "f", "response": {"output": "a"}}}
    turns = history({"role": "user", "parts": [{"text": "x"}, result, result, {"text": "y"}, {"thought": True}]})
    assert [(turn.role, len(turn.parts)) for turn in turns] == [("user", 1), ("tool", 2), ("user", 1)]


PNG = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


def test_images() -> None:
    shown = {"fileData": {"mime_type": "image/png", "file_uri": "https://x/y.png"}}
    result = {"functionResponse": {"name": "see", "response": {"output": "it"}, "parts": [PNG]}}
    user, tool = history({"role": "user", "parts": [PNG, shown, result]})
    inline = Image("data:image/png;base64,AAAA")
    assert user.parts == (inline, Image("https://x/y.png"))
    assert tool.parts == (ToolResult("", (Text("it"), inline), name="see"),)


@pytest.mark.parametrize(
    "part", [{"executableCode": {"code": "1"}}, {"inlineData": {"mimeType": "audio/wav", "data": "A"}}, {"new": 1}]
)
def test_what_has_no_canonical_form_keeps_its_own(part: dict[str, Any]) -> None:
    assert model(part) == (Opaque("generate_content", part),)


def test_thinking_comes_back_out_of_a_signature() -> None:
    call = {"functionCall": {"id": "1", "name": "f", "args": {}}}
    signed = {**call, "thoughtSignature": seal("Hm.")}
    assert model(signed) == (Reasoning("Hm."), ToolCall("1", "f", "{}"))
    assert model({"text": "Hi", "thought_signature": seal("Hm.")}) == (Reasoning("Hm."), Text("Hi"))
    assert model({"thoughtSignature": seal("Hm.")}) == (Reasoning("Hm."),)
    shown = {"text": "Hm", "thought": True}
    assert model(shown, signed) == (Reasoning("Hm."), ToolCall("1", "f", "{}"))
    assert model(shown, call) == (Reasoning("Hm"), ToolCall("1", "f", "{}"))


@pytest.mark.parametrize("signature", ["skip_thought_signature_validator", "Q2hhdA==", seal("x")[:-4]])
def test_signatures_of_others_say_nothing(signature: str) -> None:
    assert model({"text": "Hi", "thoughtSignature": signature}) == (Text("Hi"),)


SCHEMA = {
    "type": "OBJECT",
    "properties": {
        "path": {"type": "STRING", "nullable": True, "minLength": "1"},
        "type": {"type": "ARRAY", "items": {"type": "INTEGER"}, "max_items": "3"},
        "any": {"any_of": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]},
    },
    "required": ["path"],
    "propertyOrdering": ["path", "type"],
}
PLAIN = {
    "type": "object",
    "properties": {
        "path": {"type": ["string", "null"], "minLength": 1},
        "type": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        "any": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
    },
    "required": ["path"],
}


def test_tools() -> None:
    declared = [
        {"name": "a", "description": "Does a.", "parametersJsonSchema": PLAIN},
        {"name": "b", "parameters": SCHEMA},
        {"name": "c"},
    ]
    tools = parsed(tools=[{"functionDeclarations": declared}, {"googleSearch": {}}]).conversation.tools
    assert tools == (
        Tool("a", "Does a.", PLAIN),
        Tool("b", "", PLAIN),
        Tool("c", "", {"type": "object", "properties": {}}),
    )
    assert parsed(tools=[{"function_declarations": declared}]).conversation.tools == tools


def test_a_schema_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "STRING"}
    for _ in range(200):
        schema = {"type": "ARRAY", "items": schema}
    with pytest.raises(CallError, match="maximum schema depth exceeded"):
        parsed(tools=[{"functionDeclarations": [{"name": "f", "parameters": schema}]}])


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({}, "auto"),
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "VALIDATED"}, "auto"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY"}, "required"),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, "function:f"),
        ({"mode": "any", "allowed_function_names": ["f", "g"]}, "required"),
    ],
)
def test_tool_choice(config: Any, choice: str) -> None:
    assert parsed(toolConfig={"functionCallingConfig": config}).tool_choice == choice


def test_sampling() -> None:
    config = {
        "maxOutputTokens": 5, "temperature": 1, "top_p": 0.9, "topK": 64.0, "stopSequences": ["x"], "seed": 3,
        "candidateCount": 2, "responseMimeType": "application/json", "thinkingConfig": {"includeThoughts": True},
        "newField": {"any": "thing"},
    }  # fmt: skip
    request = parsed(generationConfig=config)
    assert request.sampling == Sampling(1.0, 0.9, 64, 5, ("x",), 3, {})
    assert (request.n, request.echo) == (2, {"includeThoughts": True})
    assert parsed(generationConfig={"responseSchema": SCHEMA}).sampling.schema == PLAIN
    assert parsed(generationConfig={"responseJsonSchema": PLAIN}).sampling.schema == PLAIN
    assert parsed(generation_config={"responseMimeType": "text/plain"}).sampling == Sampling()


def test_counting_takes_contents_or_a_whole_request() -> None:
    whole = {"model": "models/m", "contents": HELLO, "systemInstruction": "Be brief."}
    body = orjson.dumps({"generateContentRequest": whole})
    assert len(generate_content.parse(body, COUNT, {}).conversation.messages) == 2
    assert len(parsed(COUNT).conversation.messages) == 1


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"contents": []}, "contents"),
        ({"contents": None}, "contents"),
        ({"contents": [{"role": "robot", "parts": []}]}, "contents[0].role"),
        ({"contents": [{"role": "user", "parts": [{"text": 1}]}]}, "contents[0].parts[0].text"),
        ({"contents": [{"role": "model", "parts": [{"functionCall": {}}]}]}, "contents[0].parts[0].functionCall.name"),
        ({"contents": [3]}, "contents[0][0]"),
        ({"cachedContent": "cachedContents/1"}, "cachedContent"),
        ({"tools": [{"functionDeclarations": {"name": "f"}}]}, "tools[0].functionDeclarations"),
        ({"generationConfig": {"maxOutputTokens": 0}}, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"candidateCount": 9}}, "generationConfig.candidateCount"),
    ],
)
def test_a_wrong_body_is_refused_by_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(CallError) as refused:
        parsed(**body)
    assert (refused.value.status, refused.value.param) == (400, param)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PART_FIELDS = ["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"]
INNER_FIELDS = ["name", "args", "id", "response", "output", "error", "parts", "mimeType", "data", "fileUri"]
blobs = st.dictionaries(st.sampled_from(INNER_FIELDS), values, max_size=4)
parts = st.dictionaries(st.sampled_from(PART_FIELDS), values | blobs | st.just(seal("Hm.")), max_size=3)
contents = st.fixed_dictionaries(
    {"parts": st.lists(parts | values, max_size=3)},
    optional={"role": st.sampled_from(["user", "model", "function"]) | values},
)
bodies = st.fixed_dictionaries(
    {"contents": st.lists(contents | values, max_size=3) | values},
    optional={
        "systemInstruction": contents | values,
        "tools": st.lists(st.fixed_dictionaries({"functionDeclarations": st.lists(blobs, max_size=2) | values})),
        "toolConfig": values,
        "generationConfig": st.dictionaries(
            st.sampled_from(["topK", "stopSequences", "thinkingConfig", "responseSchema", "candidateCount"]), values
        ),
    },
)


@given(bodies | values)
def test_any_json_is_a_request_or_an_error_of_the_caller_s(body: Any) -> None:
    try:
        request = generate_content.parse(orjson.dumps(body), GENERATE, {})
    except CallError as error:
        assert error.status == 400
    else:
        assert isinstance(request, Request)


@given(st.binary(max_size=40))
def test_any_bytes_too(body: bytes) -> None:
    with pytest.raises(CallError):
        generate_content.parse(body, GENERATE, {})
