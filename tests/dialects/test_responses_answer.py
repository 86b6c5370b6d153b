# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a Responses client reads: the answer whole, the answer in events, errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from nemo_gym_polar.chat import (
    Choice,
    Completion,
    FinishReason,
    Message,
    Part,
    Reasoning,
    Request,
    Text,
    ToolCall,
    Usage,
)
from nemo_gym_polar.dialects import responses, sealed
from nemo_gym_polar.dialects.base import CallError, Endpoint
from nemo_gym_polar.forest.canonical import message_digest

GENERATE = Endpoint("generate", ("POST",))
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "f", "parameters": {}},
    {"type": "custom", "name": "patch"},
    {"type": "namespace", "name": "agents", "description": "", "tools": [{"type": "function", "name": "spawn"}]},
    {"type": "tool_search", "execution": "client"},
]
PLAIN = TOOLS[:2]  # the kinds that every version of the client knows
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def request(tools: list[dict[str, Any]] = TOOLS, given: Any = "hi", **fields: Any) -> Request:
    body = {"model": "m", "input": given, "tools": tools, **fields}
    return responses.parse(orjson.dumps(body), GENERATE, {})


def completion(*parts: Part, finish: FinishReason = "stop") -> Completion:
    choice = Choice(Message("assistant", parts), finish)
    return Completion("resp_1", 1700000000, "m", (choice,), Usage(10, 5, 3, 2))


def answer(*parts: Part, asked: Request | None = None, finish: FinishReason = "stop") -> dict[str, Any]:
    wire: dict[str, Any] = orjson.loads(responses.answer(completion(*parts, finish=finish), asked or request()))
    return wire


def events(answered: Completion, asked: Request) -> list[dict[str, Any]]:
    raw = responses.opening(answered.id, answered.created, asked) + b"".join(responses.stream(answered, asked))
    blocks = raw.decode().split("\n\n")
    assert blocks.pop() == ""
    found = []
    for block in blocks:
        kind, data = block.split("\n")
        found.append(orjson.loads(data.removeprefix("data: ")))
        assert kind == f"event: {found[-1]['type']}"
    return found


def test_an_answer_is_what_the_sdk_expects() -> None:
    parts = (
        Reasoning("Hm."),
        Text("Hi"),
        ToolCall("call_1", "f", "{bad"),
        ToolCall("call_2", "patch", '{"input":"x"}'),
    )
    parsed = Response.model_validate(answer(*parts, asked=request(PLAIN)), strict=True)
    thought, said, call, patch = parsed.output
    assert (parsed.id, parsed.status, parsed.output_text) == ("resp_1", "completed", "Hi")
    assert thought.type == "reasoning" and thought.content and thought.content[0].text == "Hm."
    assert said.type == "message" and said.status == "completed"
    assert call.type == "function_call" and (call.arguments, call.call_id) == ("{bad", "call_1")
    assert patch.type == "custom_tool_call" and (patch.input, patch.call_id) == ("x", "call_2")
    assert parsed.usage is not None
    assert (parsed.usage.input_tokens, parsed.usage.output_tokens, parsed.usage.total_tokens) == (10, 5, 15)
    assert parsed.usage.input_tokens_details.cached_tokens == 3
    assert parsed.usage.output_tokens_details.reasoning_tokens == 2


def test_calls_go_out_in_the_terms_of_their_declaration() -> None:
    calls = (ToolCall("c1", "agents__spawn", "{}"), ToolCall("c2", "tool_search", '{"q":1}'), ToolCall("c3", "g", ""))
    spawn, search, unknown = answer(*calls)["output"]
    assert (spawn["type"], spawn["namespace"], spawn["name"]) == ("function_call", "agents", "spawn")
    assert (search["type"], search["execution"], search["arguments"]) == ("tool_search_call", "client", {"q": 1})
    assert (unknown["type"], unknown["name"], unknown["arguments"]) == ("function_call", "g", "")
    assert "namespace" not in unknown


@pytest.mark.parametrize(("tool", "field"), [("patch", "input"), ("f", "arguments"), ("tool_search", "arguments")])
def test_malformed_arguments_go_out_verbatim(tool: str, field: str) -> None:
    assert answer(ToolCall("c", tool, '{"a": [1,'))["output"][0][field] == '{"a": [1,'


def test_thinking_stands_where_it_was_asked_for() -> None:
    (plain, _) = answer(Reasoning("Hm."))["output"]
    assert (plain["content"], plain["summary"]) == ([{"type": "reasoning_text", "text": "Hm."}], [])
    assert "encrypted_content" not in plain
    asked = request(reasoning={"summary": "auto"}, include=["reasoning.encrypted_content"])
    (summary, _) = answer(Reasoning("Hm."), asked=asked)["output"]
    assert summary["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert sealed.unseal(summary["encrypted_content"]) == "Hm."
    assert "content" not in summary


@pytest.mark.parametrize("parts", [(), (Reasoning("Hm."),)])
def test_an_answer_that_says_nothing_is_an_empty_message(parts: tuple[Part, ...]) -> None:
    said = answer(*parts)["output"][-1]
    assert (said["type"], said["content"][0]["text"]) == ("message", "")


def test_an_answer_that_was_cut_is_incomplete() -> None:
    wire = answer(Text("Hi"), finish="length")
    assert (wire["status"], wire["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert wire["output"][0]["status"] == "incomplete"
    assert events(completion(Text("Hi"), finish="length"), request())[-1]["type"] == "response.incomplete"


def test_the_request_is_repeated() -> None:
    asked = request(PLAIN, instructions="Be brief.", metadata={"a": "b"}, temperature=0.5, text={"verbosity": "low"})
    parsed = Response.model_validate(answer(Text("Hi"), asked=asked), strict=True)
    assert (parsed.instructions, parsed.metadata, parsed.temperature) == ("Be brief.", {"a": "b"}, 0.5)
    assert parsed.text and parsed.text.format and parsed.text.format.type == "text"
    assert [tool.type for tool in parsed.tools] == ["function", "custom"]


def test_every_event_is_what_the_sdk_expects_in_the_providers_order() -> None:
    parts = (Reasoning("Hm."), Text("Hi"), ToolCall("c1", "f", "{}"), ToolCall("c2", "patch", '{"input":"x"}'))
    found = events(completion(*parts), request(PLAIN))
    for event in found:
        EVENT.validate_python(event, strict=True)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    added, done = "response.output_item.added", "response.output_item.done"
    part, text = "response.content_part", "response.output_text"
    arguments, given = "response.function_call_arguments", "response.custom_tool_call_input"
    thought = [f"{part}.added", "response.reasoning_text.delta", "response.reasoning_text.done", f"{part}.done"]
    assert [event["type"] for event in found] == [
        *("response.created", "response.in_progress"),
        *(added, *thought, done),
        *(added, f"{part}.added", f"{text}.delta", f"{text}.done", f"{part}.done", done),
        *(added, f"{arguments}.delta", f"{arguments}.done", done),
        *(added, f"{given}.delta", f"{given}.done", done),
        "response.completed",
    ]


def test_a_long_answer_comes_in_several_deltas() -> None:
    found = events(completion(Text("word " * 100), ToolCall("c", "f", '{"a":"' + "x" * 200 + '"}')), request())
    for kind in ("response.output_text.delta", "response.function_call_arguments.delta"):
        assert sum(event["type"] == kind for event in found) > 3


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
tool_names = st.sampled_from(["f", "patch", "agents__spawn", "tool_search", "unknown"])
objects = st.dictionaries(texts, st.integers(-9, 9) | texts, max_size=3)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    name = draw(tool_names)
    value = {"input": draw(texts)} if name == "patch" else draw(objects)
    malformed = st.nothing() if name == "patch" else texts
    return ToolCall(f"call_{draw(st.uuids()).hex}", name, draw(st.just(orjson.dumps(value).decode()) | malformed))


@st.composite
def answers(draw: st.DrawFn) -> tuple[Part, ...]:
    """As a renderer parses them: thinking, then text, then calls; none of them empty."""
    thought, said = draw(texts), draw(texts)
    parts: list[Part] = [Reasoning(thought)] if thought else []
    return (*parts, *([Text(said)] if said else []), *draw(st.lists(calls(), max_size=3)))


asked_for = st.sampled_from(
    [
        {},
        {"reasoning": {"summary": "auto"}},
        {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]},
        {"include": ["reasoning.encrypted_content"]},
    ]
)


def gathered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The output as a client builds it from the pieces alone."""
    output: list[dict[str, Any]] = []
    for event in found:
        match event["type"]:
            case "response.output_item.added":
                output.append({"text": "", "type": event["item"]["type"]})
            case str() as kind if kind.endswith(".delta"):
                output[event["output_index"]]["text"] += event["delta"]
    return output


def told(item: dict[str, Any]) -> str:
    inner = item.get("summary") or item.get("content")
    return str(inner[0]["text"] if inner else item.get("arguments", item.get("input")))


@given(answers(), asked_for, st.sampled_from(["stop", "length"]))
def test_events_say_what_the_answer_says(parts: tuple[Part, ...], fields: dict[str, Any], finish: FinishReason) -> None:
    asked = request(**fields)
    said, found = answer(*parts, asked=asked, finish=finish), events(completion(*parts, finish=finish), asked)
    assert found[-1]["response"] == said
    assert [event["item"] for event in found if event["type"] == "response.output_item.done"] == said["output"]
    for item, built in zip(said["output"], gathered(found), strict=True):
        assert built["type"] == item["type"]
        assert item["type"] == "tool_search_call" or built["text"] == told(item)


@given(answers(), asked_for, st.booleans())
def test_a_repeated_answer_is_the_message_that_was_given(
    parts: tuple[Part, ...], fields: dict[str, Any], without_ids: bool
) -> None:
    output = answer(*parts, asked=request(**fields))["output"]
    if without_ids:
        output = [{key: value for key, value in item.items() if key != "id"} for item in output]
    repeated = request(given=[{"role": "user", "content": "hi"}, *output]).conversation.messages[1]
    assert message_digest(repeated) == message_digest(Message("assistant", parts))
    if "tool_search" not in {call.name for call in repeated.tool_calls}:  # whose arguments are JSON on the wire
        assert repeated == Message("assistant", parts)


@given(texts)
def test_thinking_survives_in_the_sealed_token_alone(thought: str) -> None:
    asked = request(reasoning={"summary": "auto"}, include=["reasoning.encrypted_content"])
    item = answer(Reasoning(thought), Text("Hi"), asked=asked)["output"][0]
    repeated = request(given=[{**item, "summary": [], "content": None}, {"role": "assistant", "content": "Hi"}])
    assert repeated.conversation.messages[0].reasoning == thought


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(["message", "reasoning", "tool_search_output", "additional_tools", "item_reference"]) | (
    st.sampled_from(["function_call", "custom_tool_call", "tool_search_call", "local_shell_call", "web_search_call"])
    | st.sampled_from(["function_call_output", "custom_tool_call_output", "local_shell_call_output"])
)
parts_of_content = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "output_text", "input_image", "refusal", "x"])},
    optional={"text": json_values, "image_url": json_values, "refusal": json_values},
)
tools = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom", "namespace", "tool_search", "web_search"])},
    optional={
        "name": json_values,
        "description": json_values,
        "parameters": json_values,
        "format": json_values,
        "tools": st.lists(json_values, max_size=2),
        "execution": st.just("client"),
    },
)
items = st.fixed_dictionaries(
    {},
    optional={
        "type": kinds | json_values,
        "role": st.sampled_from(["user", "assistant", "developer"]) | json_values,
        "content": st.lists(parts_of_content, max_size=2) | json_values,
        "call_id": st.text(max_size=3) | json_values,
        "name": st.text(max_size=3) | json_values,
        "tools": st.lists(tools | json_values, max_size=2) | json_values,
        **dict.fromkeys(("arguments", "input", "output", "summary", "encrypted_content", "namespace"), json_values),
    },
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("m") | json_values,
        "input": st.lists(items | json_values, max_size=3) | json_values,
        "tools": st.lists(tools | json_values, max_size=3) | json_values,
        **dict.fromkeys(
            ("instructions", "stream", "store", "text", "tool_choice", "reasoning", "include"), json_values
        ),
        **dict.fromkeys(("previous_response_id", "background", "metadata", "conversation", "prompt"), json_values),
        **dict.fromkeys(("temperature", "top_p", "max_output_tokens"), json_values),
    },
)

likely = st.fixed_dictionaries(
    {"model": st.just("m"), "input": st.lists(items, min_size=1, max_size=3)},
    optional={"tools": st.lists(tools, max_size=2)},
)


@given(likely | bodies | json_values)
def test_any_json_is_a_request_or_a_call_error(body: Any) -> None:
    try:
        asked = responses.parse(orjson.dumps(body), GENERATE, {})
    except CallError as error:
        assert 400 <= error.status < 500
        assert orjson.loads(responses.error(error))["error"]["message"]
        return
    assert orjson.loads(responses.answer(completion(Text("Hi")), asked))["object"] == "response"
    assert events(completion(Text("Hi")), asked)


def test_a_context_that_is_too_long_has_the_code_that_codex_knows() -> None:
    error = orjson.loads(responses.error(CallError("context_overflow", "Too long.", param="input")))["error"]
    assert error == {
        "message": "Too long.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }


def test_counts_and_deletions() -> None:
    assert orjson.loads(responses.count(7)) == {"object": "response.input_tokens", "input_tokens": 7}
    assert orjson.loads(responses.deleted("resp_1")) == {"id": "resp_1", "object": "response", "deleted": True}
