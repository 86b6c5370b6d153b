# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a Messages request becomes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Image, Message, Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from nemo_gym_polar.dialects import messages, registry, sealed
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.forest.canonical import message_digest

GENERATE = Endpoint("generate", ("POST",))
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
BASH = {"name": "Bash", "description": "Run.", "input_schema": SCHEMA}
NOTEBOOK = {"name": "NotebookEdit", "description": "Edit.", "input_schema": SCHEMA, "defer_loading": True}
VERSION = {"anthropic-version": "2023-06-01"}


def parse(*history: dict[str, Any], **fields: Any) -> Request:
    body = {"model": "m", "max_tokens": 10, "messages": list(history), **fields}
    return messages.parse(orjson.dumps(body), GENERATE, {})


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def tool_result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def history(*given: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    return parse(*given, **fields).conversation.messages


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/v1/messages", {}, "generate"),
        ("/v1/messages/count_tokens", {}, "count"),
        ("/v1/models", VERSION, "models"),
        ("/v1/models/claude-sonnet-4-5", VERSION, "model"),
        ("/api/hello", {}, "hello"),
        ("/v1/messages/batches", {}, None),
        ("/v1/files", VERSION, None),
    ],
)
def test_paths(path: str, headers: dict[str, str], kind: str | None) -> None:
    dialect, endpoint = registry.find(Target(path, "beta=true", headers))
    assert dialect.NAME == "messages"
    assert (endpoint and endpoint.kind) == kind


def test_models_without_the_header_are_openais() -> None:
    assert registry.find(Target("/v1/models"))[0].NAME == "chat"


# -- the conversation


def test_system_texts_and_lists() -> None:
    assert history(user("Hi"), system="Be brief.")[0] == Message("system", (Text("Be brief."),))
    blocks = [text("Be"), text("brief.", cache_control={"type": "ephemeral"})]
    assert history(user("Hi"), system=blocks)[0] == Message("system", (Text("Be\n\nbrief."),))


def test_the_billing_header_is_not_for_the_model() -> None:
    header = "x-anthropic-billing-header: cc_version=2.1.329.d91; cc_entrypoint=sdk-cli;"
    assert history(user("Hi"), system=[text(header), text("Be brief.")])[0].text == "Be brief."
    assert history(user("Hi"), system=[text(header)]) == history(user("Hi"))


@pytest.mark.parametrize("marker", [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, None])
def test_cache_markers_and_spelling_change_nothing(marker: Any) -> None:
    plain = parse(user("Hi"), {"role": "system", "content": "Env."}, tools=[BASH])
    marked = parse(
        user([text("Hi", cache_control=marker)]),
        {"role": "system", "content": [text("Env.", cache_control=marker)]},
        tools=[{**BASH, "cache_control": marker}],
    )
    assert marked.conversation == plain.conversation


def test_results_and_words_of_one_message_are_two() -> None:
    given = user([tool_result("ok"), tool_result([text("no")], is_error=True), text("Go on.")])
    results = (ToolResult("toolu_1", (Text("ok"),)), ToolResult("toolu_1", (Text("no"),), is_error=True))
    assert history(given) == (Message("tool", results), Message("user", (Text("Go on."),)))
    assert history(user([])) == (Message("user", ()),)


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ({"type": "base64", "media_type": "image/png", "data": "AAAA"}, "data:image/png;base64,AAAA"),
        ({"type": "url", "url": "http://x/y.png"}, "http://x/y.png"),
    ],
)
def test_images(source: dict[str, str], url: str) -> None:
    image = {"type": "image", "source": source}
    assert history(user([image]))[0].parts == (Image(url),)
    assert history(user([tool_result([text("see"), image])]))[0].parts == (
        ToolResult("toolu_1", (Text("see"), Image(url))),
    )


def test_thinking_comes_back_even_without_its_text() -> None:
    proof = sealed.seal("Hm.")
    for block in (
        {"type": "thinking", "thinking": "Hm.", "signature": proof},
        {"type": "thinking", "thinking": "", "signature": proof},
        {"type": "redacted_thinking", "data": proof},
    ):
        assert history(assistant(block))[0].parts == (Reasoning("Hm."),)


def test_thinking_of_others_is_kept_as_it_is() -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCg"}
    assert history(assistant(block))[0].parts == (Reasoning("Hm.", signature="EqQBCg"),)
    hidden = {"type": "redacted_thinking", "data": "EmwKAh"}
    assert history(assistant(hidden))[0].parts == (Opaque("messages", hidden),)


def test_calls() -> None:
    called = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 1.0}}
    assert history(assistant(text("Look."), called))[0].parts == (
        Text("Look."),
        ToolCall("toolu_1", "Bash", '{"command":"ls","n":1.0}'),
    )


def test_what_claude_code_could_not_parse_is_the_text_that_was_sampled() -> None:
    raw = '{"command": "ls'
    given = {"__unparsedToolInput": {"raw": raw, "len": len(raw)}}
    (call,) = history(assistant({"type": "tool_use", "id": "1", "name": "Bash", "input": given}))[0].tool_calls
    assert call.arguments == raw


@pytest.mark.parametrize("kind", ["server_tool_use", "web_search_tool_result", "document", "container_upload", "new"])
def test_other_blocks_come_out_as_they_came_in(kind: str) -> None:
    block = {"type": kind, "anything": [1]}
    assert history(user([block]))[0].parts == (Opaque("messages", block),)


def test_a_plain_document_is_text() -> None:
    block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Read me."}}
    assert history(user([block]))[0].parts == (Text("Read me."),)


# -- tools


def test_tools_that_run_at_the_provider_are_not_offered() -> None:
    server = [{"type": "web_search_20250305", "name": "web_search"}, {"type": "code_execution_20250825", "name": "c"}]
    assert [tool.name for tool in parse(user("Hi"), tools=[*server, BASH]).conversation.tools] == ["Bash"]


def test_anthropics_own_tools_get_a_schema() -> None:
    given = [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    ]
    shell, editor = parse(user("Hi"), tools=given).conversation.tools
    assert (shell.kind, list(shell.parameters["properties"])) == ("client", ["command", "restart"])
    assert editor.parameters["required"] == ["command", "path"]


def test_a_tool_found_later_is_described_where_it_was_found() -> None:
    called = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
    found = user([tool_result([{"type": "tool_reference", "tool_name": "NotebookEdit"}])])
    before = parse(user("Hi"), tools=[BASH]).conversation
    after = parse(user("Hi"), assistant(called), found, tools=[BASH, NOTEBOOK]).conversation
    assert after.tools == before.tools
    assert [tool.name for tool in after.deferred] == ["NotebookEdit"]
    assert [tool.name for tool in after.callable_tools] == ["Bash", "NotebookEdit"]
    (result,) = after.messages[2].parts
    assert isinstance(result, ToolResult) and isinstance(result.parts[0], Text)
    assert '"name":"NotebookEdit"' in result.parts[0].text and '"command"' in result.parts[0].text


def test_a_tool_that_the_history_describes_is_deferred_whatever_its_flag_says() -> None:
    found = user([tool_result([{"type": "tool_reference", "tool_name": "NotebookEdit"}])])
    loaded = {key: value for key, value in NOTEBOOK.items() if key != "defer_loading"}
    conversation = parse(user("Hi"), found, tools=[BASH, loaded]).conversation
    assert ([tool.name for tool in conversation.tools], len(conversation.deferred)) == (["Bash"], 1)


def test_a_reference_to_an_unknown_tool_is_its_name() -> None:
    found = user([tool_result([{"type": "tool_reference", "tool_name": "Gone"}])])
    assert history(found)[0].parts == (ToolResult("toolu_1", (Text("Gone"),)),)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, "auto"),
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "Bash"}, "function:Bash"),
    ],
)
def test_tool_choice(given: Any, choice: str) -> None:
    assert parse(user("Hi"), tool_choice=given).tool_choice == choice


# -- sampling and the rest


def test_sampling() -> None:
    sampling = parse(user("Hi"), temperature=0.5, top_p=0.9, top_k=5, stop_sequences=["END"]).sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.9, 5)
    assert (sampling.max_tokens, sampling.stop, sampling.schema) == (10, ("END",), None)


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_structured_output(field: str) -> None:
    wanted = {"type": "json_schema", "schema": SCHEMA}
    value = {"effort": "high", "format": wanted} if field == "output_config" else wanted
    assert parse(user("Hi"), **{field: value}).sampling.schema == SCHEMA


@pytest.mark.parametrize(
    "fields",
    [
        {"thinking": {"type": "adaptive", "display": "updates"}},
        {"thinking": {"type": "enabled", "budget_tokens": 31999}},
        {"thinking": {"type": "disabled"}},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        {"output_config": {"effort": "high"}},
        {"metadata": {"user_id": "{}"}, "service_tier": "auto", "speed": "fast", "container": "c"},
        {"mcp_servers": [{"type": "url"}], "unknown": {"a": 1}},
    ],
)
def test_what_does_not_change_sampling_is_taken(fields: dict[str, Any]) -> None:
    plain, given = parse(user("Hi")), parse(user("Hi"), **fields)
    assert (given.conversation, given.sampling) == (plain.conversation, plain.sampling)


def test_a_count_needs_no_limit() -> None:
    body = orjson.dumps({"model": "m", "messages": [user("Hi")]})
    assert messages.parse(body, Endpoint("count", ("POST",)), {}).sampling.max_tokens is None
    with pytest.raises(CallError, match="max_tokens: Field required"):
        messages.parse(body, GENERATE, {})


BAD: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": "Hi"}, "messages"),
    ({"messages": [user(5)]}, "messages[0].content"),
    ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
    ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0].text"),
    ({"messages": [assistant({"type": "tool_use", "id": "1", "name": "a", "input": "{}"})]},
     "messages[0].content[0].input"),
    ({"messages": [user([{"type": "image"}])]}, "messages[0].content[0].source"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"model": None}, "model"),
    ({"system": 5}, "system"),
    ({"tools": [{"name": "x"}]}, "tools[0].input_schema"),
    ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
    ({"stop_sequences": [" "]}, "stop_sequences"),
    ({"stream": "yes"}, "stream"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), BAD)
def test_bad_values_are_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(CallError) as error:
        messages.parse(orjson.dumps({"model": "m", "max_tokens": 10, "messages": [user("Hi")], **fields}), GENERATE, {})
    assert error.value.param == param
    assert error.value.status == 400


words = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | words
kinds = st.sampled_from(
    ["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "tool_reference", "document", "x"]
)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2))
keys = ["text", "thinking", "signature", "data", "id", "name", "input", "content", "tool_use_id", "source", "tool_name"]
blocks = st.fixed_dictionaries({"type": kinds}, optional=dict.fromkeys(keys, anything))
contents = anything | st.lists(blocks | anything, max_size=3)
turns = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system"]) | anything, "content": contents}
)
tools = st.fixed_dictionaries({"name": words | anything}, optional={"type": words, "input_schema": anything})
others = ["system", "tools", "tool_choice", "thinking", "stop_sequences", "temperature", "output_config", "stream"]
bodies = st.fixed_dictionaries(
    {"model": words | anything, "max_tokens": st.integers(-1, 5), "messages": st.lists(turns, max_size=3) | anything},
    optional={**dict.fromkeys(others, anything), "tools": st.lists(tools, max_size=2)},
)


@given(bodies | anything)
def test_any_body_is_a_request_or_a_refusal(body: Any) -> None:
    try:
        request = messages.parse(orjson.dumps(body), GENERATE, {})
    except CallError as error:
        assert 400 <= error.status < 500
        assert orjson.loads(messages.error(error))["error"]["message"]
    else:
        for message in request.conversation.messages:
            message_digest(message)
