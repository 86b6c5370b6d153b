# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from renderers import Qwen35RendererConfig
from renderers.qwen35 import Qwen35Renderer
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from nemo_gym_polar.engines.template import ChatTemplate, TemplateRefusalError
from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.policy.tokenizer import chat_template

WORDS = st.text(alphabet="ab .!>\n\t\"'{}é€<", max_size=20)
MARKED = st.sampled_from(
    ["<think>", "</think>", "<tool_call>", "</tool_response>", "<tool_response>", "<|im_end|>", "ok."]
)
TEXT = st.lists(WORDS | MARKED, max_size=4).map("".join)
CONTENT = TEXT | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=3)
NAME = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
VALUE = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAME, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(NAME, VALUE, max_size=3)
CALL = st.builds(
    lambda name, arguments, as_text: {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments) if as_text else arguments},
    },
    NAME,
    ARGUMENTS,
    st.booleans(),
)
SYSTEM = st.fixed_dictionaries({"role": st.just("system"), "content": CONTENT})
USER = st.fixed_dictionaries({"role": st.just("user"), "content": CONTENT})
TOOL = st.fixed_dictionaries({"role": st.just("tool"), "content": CONTENT})
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": CONTENT | st.none()},
    optional={"reasoning_content": TEXT | st.none(), "tool_calls": st.lists(CALL, max_size=3)},
)
HISTORY = st.builds(
    lambda system, rest: [*system, *rest],
    st.lists(SYSTEM, max_size=1),
    st.lists(USER | ASSISTANT | TOOL, min_size=1, max_size=7),
)
TOOLS = st.none() | st.lists(
    st.builds(
        lambda name, text: {
            "type": "function",
            "function": {
                "name": name,
                "description": text,
                "parameters": {"type": "object", "properties": {name: {"type": "string"}}},
            },
        },
        NAME,
        TEXT,
    ),
    max_size=2,
)


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate(chat_template())


@pytest.fixture(scope="module")
def loaded(policy_dir: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(policy_dir)


@given(HISTORY, TOOLS, st.booleans(), st.booleans())
def test_tokens_equal_those_of_renderers(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    thinking: bool,
    generation: bool,
) -> None:
    adapter = FileTokenizer(tokenizer, "policy")
    renderer = Qwen35Renderer(adapter, Qwen35RendererConfig(enable_thinking=thinking))
    expected = renderer.render_ids(messages, tools=tools, add_generation_prompt=generation)
    text = template.render(messages, tools=tools, add_generation_prompt=generation, enable_thinking=thinking)
    assert tokenizer.encode(text, add_special_tokens=False).ids == expected


@given(messages=HISTORY, tools=TOOLS, thinking=st.booleans())
def test_text_equals_that_of_transformers(
    loaded: PreTrainedTokenizerFast,
    template: ChatTemplate,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    thinking: bool,
) -> None:
    for message in messages:
        for call in message.get("tool_calls") or []:
            if isinstance(call["function"]["arguments"], str):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    expected = loaded.apply_chat_template(
        messages, tools=tools or None, add_generation_prompt=True, tokenize=False, enable_thinking=thinking
    )
    assert template.render(messages, tools=tools, enable_thinking=thinking) == expected


@given(messages=HISTORY, answer=ASSISTANT, result=TOOL)
def test_without_thinking_a_longer_conversation_begins_with_the_shorter_one(
    template: ChatTemplate, messages: list[dict[str, Any]], answer: dict[str, Any], result: dict[str, Any]
) -> None:
    answer["reasoning_content"] = ""
    shorter = template.render([*messages, answer], add_generation_prompt=False)
    longer = template.render([*messages, answer, result, {"role": "user", "content": "next"}])
    histories = [message for message in messages if message.get("role") == "assistant"]
    if not any(message.get("reasoning_content") or "think>" in str(message) for message in histories):
        assert longer.startswith(shorter)


def test_thinking_is_off_unless_asked_for(template: ChatTemplate) -> None:
    messages = [{"role": "user", "content": "hi"}]
    assert template.render(messages).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert template.render(messages, enable_thinking=True).endswith("<|im_start|>assistant\n<think>\n")


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "No messages provided"),
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], "must be at the beginning"),
        ([{"role": "judge", "content": "a"}], "Unexpected message role: judge"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "Only text content"),
        ([{"role": "user", "content": 5}], "must be text or a list of text parts: 5"),
    ],
)
def test_refusals_are_the_templates_own(template: ChatTemplate, messages: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(TemplateRefusalError, match=reason):
        template.render(messages)


@pytest.mark.parametrize("arguments", ["{broken", "[1]", "5", None, ""])
def test_arguments_that_are_no_object_render_as_none(template: ChatTemplate, arguments: Any) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    text = template.render([{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert "<function=f>\n</function>" in text


def test_older_directories_keep_the_template_in_the_tokenizer_config(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}!"}))
    assert ChatTemplate.load(tmp_path).render([{"role": "user", "content": "hi"}]) == "hi!"


def test_a_directory_without_template_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"chat_template.jinja is missing"):
        ChatTemplate.load(tmp_path)
