# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a Responses request says: items into messages, declarations into tools."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from nemo_gym_polar.chat import Image, Message, Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from nemo_gym_polar.dialects import registry, responses, sealed
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target

GENERATE = Endpoint("generate", ("POST",))
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
AGENTS = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [{**FUNCTION, "name": "spawn"}]}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}}


def parse(given: Any = "hi", **fields: Any) -> Request:
    body = {"model": "m", "input": given, **fields}
    return responses.parse(orjson.dumps(body), GENERATE, {"thread-id": "t"})


def messages(*items: dict[str, Any]) -> tuple[Message, ...]:
    return parse(list(items)).conversation.messages


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def test_a_text_is_the_users() -> None:
    request = parse("hi")
    assert request.conversation.messages == (Message("user", (Text("hi"),)),)
    assert (request.dialect, request.model, request.stored, request.stream) == ("responses", "m", True, False)
    assert request.hints == {"thread-id": "t"}


@pytest.mark.parametrize(("role", "canonical"), [("user", "user"), ("system", "system"), ("developer", "system")])
@pytest.mark.parametrize("content", ["hi", [{"type": "input_text", "text": "hi"}]])
def test_messages(role: str, canonical: str, content: Any) -> None:
    assert messages({"type": "message", "role": role, "content": content}) == (Message(canonical, (Text("hi"),)),)  # type: ignore[arg-type]  # a str


def test_images_by_url_are_canonical_and_files_travel_as_they_are() -> None:
    file = {"type": "input_file", "file_id": "file-1"}
    by_id = {"type": "input_image", "file_id": "file-2"}
    content = [{"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "auto"}, file, by_id]
    image, *rest = messages({"role": "user", "content": content})[0].parts
    assert image == Image("data:image/png;base64,AA")
    assert rest == [Opaque("responses", file), Opaque("responses", by_id)]


def test_the_items_of_one_answer_are_one_message() -> None:
    found = messages(
        user("hi"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed.seal("Hm.")},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{bad"},
        {"type": "function_call", "call_id": "call_2", "namespace": "agents", "name": "spawn", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "one"},
        {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "two"}]},
    )
    calls = (ToolCall("call_1", "f", "{bad"), ToolCall("call_2", "agents__spawn", "{}"))
    assert found[1] == Message("assistant", (Reasoning("Hm."), Text("Hi"), *calls))
    assert found[2:] == (
        Message("tool", (ToolResult("call_1", (Text("one"),)),)),
        Message("tool", (ToolResult("call_2", (Text("two"),)),)),
    )


def test_a_result_may_hold_images() -> None:
    output = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "http://x/y.png"}]
    (found,) = messages({"type": "function_call_output", "call_id": "c", "output": output})
    assert found.parts == (ToolResult("c", (Text("see"), Image("http://x/y.png"))),)


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ({"summary": [{"type": "summary_text", "text": "S"}]}, Reasoning("S")),
        ({"content": [{"type": "reasoning_text", "text": "C"}], "summary": []}, Reasoning("C")),
        ({"summary": [], "encrypted_content": "foreign"}, Reasoning("", encrypted="foreign")),
        (
            {"summary": [{"type": "summary_text", "text": "S"}], "encrypted_content": sealed.seal("All of it.")},
            Reasoning("All of it."),
        ),
    ],
)
def test_thinking_comes_back_in_any_form(item: dict[str, Any], part: Reasoning) -> None:
    assert messages({"type": "reasoning", "id": "rs", **item})[0].parts == (part,)


def test_custom_calls_are_calls_with_one_text() -> None:
    found = messages(
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    )
    assert found[0].parts == (ToolCall("c", "patch", '{"input":"*** Begin"}'),)
    assert found[1].parts == (ToolResult("c", (Text("ok"),)),)


def test_shell_calls_of_the_providers_own_kind() -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    found = messages(
        {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": action},
        {"type": "local_shell_call_output", "id": "c", "output": "a"},
    )
    assert found[0].parts == (ToolCall("c", "local_shell", orjson.dumps(action).decode()),)
    assert found[1].parts == (ToolResult("c", (Text("a"),)),)


def test_what_has_no_canonical_form_is_kept() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert messages(item) == (Message("assistant", (Opaque("responses", item),)),)


def test_tools_of_all_kinds() -> None:
    patch = {"type": "custom", "name": "patch", "description": "Edits."}
    tools = parse(tools=[FUNCTION, {"type": "web_search"}, AGENTS, patch, SEARCH]).conversation.tools
    named = [(tool.name, tool.kind, tool.namespace) for tool in tools]
    assert named == [
        ("f", "function", None),
        ("agents__spawn", "function", "agents"),
        ("patch", "custom", None),
        ("tool_search", "client", None),
    ]
    assert (tools[0].description, tools[0].parameters) == ("d", {"type": "object"})


def test_a_grammar_is_told_in_words() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
    (tool,) = parse(tools=[{"type": "custom", "name": "patch", "format": grammar}]).conversation.tools
    assert 'lark grammar:\nstart: "x"' in tool.description


def test_deferred_tools_are_hidden_only_where_they_can_be_found() -> None:
    later = {**FUNCTION, "name": "later", "defer_loading": True}
    assert [tool.name for tool in parse(tools=[FUNCTION, later]).conversation.tools] == ["f", "later"]
    found = parse(tools=[FUNCTION, later, SEARCH]).conversation
    assert [tool.name for tool in found.tools] == ["f", "tool_search"]
    assert [tool.name for tool in found.deferred] == ["later"]


def test_what_a_search_found_can_be_called_and_is_read_in_the_history() -> None:
    items = [
        user("hi"),
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": "x"}},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [AGENTS]},
    ]
    conversation = parse(items, tools=[SEARCH]).conversation
    assert [tool.name for tool in conversation.deferred] == ["agents__spawn"]
    assert conversation.messages[1].parts == (ToolCall("c", "tool_search", '{"q":"x"}'),)
    (result,) = conversation.messages[2].parts
    assert isinstance(result, ToolResult) and '"spawn"' in result.parts[0].text  # type: ignore[union-attr]  # a text


def test_tools_inside_the_input() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}
    leading = parse([item, user("hi")]).conversation
    assert [tool.name for tool in leading.tools] == ["f"]
    assert len(leading.messages) == 1
    later = parse([user("hi"), item]).conversation
    assert later.tools == ()
    assert [tool.name for tool in later.deferred] == ["f"]
    assert '"f"' in later.messages[1].text


def test_instructions_come_first_and_are_counted() -> None:
    request = parse("hi", instructions="Be brief.", previous_response_id="resp_1", store=False)
    assert request.conversation.messages[0] == Message("system", (Text("Be brief."),))
    assert (request.instructions, request.previous, request.stored) == (1, "resp_1", False)
    assert parse("hi", instructions=[user("a"), user("b")]).instructions == 2


def test_sampling() -> None:
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    found = parse(temperature=0.5, top_p=0.9, max_output_tokens=7, text={"format": schema}).sampling
    assert (found.temperature, found.top_p, found.max_tokens, found.schema) == (0.5, 0.9, 7, {"type": "object"})
    assert parse(text={"format": {"type": "json_object"}}).sampling.schema == {}
    assert parse(text={"format": {"type": "text"}}).sampling.schema is None


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (None, "auto"),
        ("required", "required"),
        ({"type": "function", "name": "f"}, "function:f"),
        ({"type": "custom", "name": "f"}, "function:f"),
        ({"type": "allowed_tools", "mode": "none", "tools": []}, "none"),
        ({"type": "web_search_preview"}, "auto"),
    ],
)
def test_tool_choice(given: Any, canonical: str) -> None:
    assert parse(tool_choice=given).tool_choice == canonical


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": 3}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"input": [{"type": 3}]}, "input[0].type"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
        ({"model": None}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [3]}]}, "tools[0].tools[0]"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"include": "x"}, "include"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(CallError) as caught:
        responses.parse(orjson.dumps({"model": "m", "input": "hi", **fields}), GENERATE, {})
    assert (caught.value.status, caught.value.param) == (400, param)
    assert param.partition("[")[0] in caught.value.message


def test_unknown_fields_break_nothing() -> None:
    items = [{**user("hi"), "id": "msg_1", "x": 1}, {"type": "reasoning", "id": "r", "summary": [], "y": {}}]
    assert parse(items, client_metadata={"a": "b"}, z=[1]).conversation.messages[0] == Message("user", (Text("hi"),))


@pytest.mark.parametrize(
    ("path", "kind", "methods", "name"),
    [
        ("/v1/responses", "generate", ("POST",), None),
        ("/v1/responses/input_tokens", "count", ("POST",), None),
        ("/v1/responses/resp_1", "stored", ("GET", "DELETE"), "resp_1"),
    ],
)
def test_endpoints(path: str, kind: str, methods: tuple[str, ...], name: str | None) -> None:
    dialect, endpoint = registry.find(Target(path))
    assert dialect.NAME == "responses"
    assert endpoint is not None
    assert (endpoint.kind, endpoint.methods, endpoint.id) == (kind, methods, name)


@pytest.mark.parametrize("path", ["/v1/responses/", "/v1/responses/x/input_items", "/v1/responses/x/y"])
def test_other_paths_below_it_are_unknown_to_it(path: str) -> None:
    dialect, endpoint = registry.find(Target(path))
    assert (dialect.NAME, endpoint) == ("responses", None)
    assert not responses.owns(Target("/v1/responsesx"))


def test_a_count_needs_no_model() -> None:
    request = responses.parse(b'{"input": "hi"}', Endpoint("count", ("POST",)), {})
    assert request.model == ""
