# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Parsing answers, whole and while they grow."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.policy.api.answer import read_answer
from nemo_gym_polar.policy.api.live_answer import LiveAnswer
from nemo_gym_polar.policy.api.service import PolicyService

BASH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        },
    },
}
CALL = "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>"
THINKING = "<|im_start|>assistant\n<think>\n"
SILENT = "<|im_start|>assistant\n<think>\n\n</think>\n\n"


def read(service: PolicyService, text: str, opening: str = SILENT, tools: list[dict[str, Any]] | None = None) -> Any:
    prompt = service.tokenizer.encode("<|im_start|>user\nhi<|im_end|>\n" + opening)
    given_tools = [BASH] if tools is None else tools
    return read_answer(service, service.tokenizer.encode(text), prompt=prompt, tools=given_tools)


def calls(answer: Any) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in answer.tool_calls]


def test_text_and_a_call(service: PolicyService) -> None:
    answer = read(service, f"Let me look.\n\n{CALL}<|im_end|>")
    assert (answer.content, answer.reasoning) == ("Let me look.", "")
    assert calls(answer) == [("bash", {"command": "ls -l"})]
    message = answer.message()
    assert message["content"] == "Let me look."
    assert message["tool_calls"][0]["type"] == "function"
    assert message["tool_calls"][0]["id"].startswith("chatcmpl-tool-")


def test_a_call_alone_has_no_content(service: PolicyService) -> None:
    assert read(service, f"{CALL}\n{CALL}<|im_end|>").message()["content"] is None
    assert len(read(service, f"{CALL}\n{CALL}<|im_end|>").tool_calls) == 2


def test_thinking_is_apart(service: PolicyService) -> None:
    answer = read(service, f"I should look.\n</think>\n\n{CALL}<|im_end|>", THINKING)
    assert (answer.reasoning, answer.content) == ("I should look.", "")
    assert len(answer.tool_calls) == 1


def test_thinking_that_never_ends_is_all_there_is(service: PolicyService) -> None:
    answer = read(service, "I should", THINKING)
    assert (answer.reasoning, answer.content, answer.tool_calls) == ("I should", "", [])


def test_values_have_the_declared_types(service: PolicyService) -> None:
    text = CALL.replace("</function>", "<parameter=timeout>\n5\n</parameter>\n</function>")
    assert calls(read(service, text)) == [("bash", {"command": "ls -l", "timeout": 5})]
    broken = CALL.replace("</function>", "<parameter=timeout>\nsoon\n</parameter>\n</function>")
    assert calls(read(service, broken)) == [("bash", {"command": "ls -l", "timeout": "soon"})]


@pytest.mark.parametrize(
    "text",
    [
        "Look: <tool_call>\n<function=bash>\n<parameter=command>\nls",
        "<tool_call>\nbash ls\n</tool_call>",
        "a <tool_call> b",
    ],
)
@pytest.mark.parametrize("opening", [SILENT, THINKING])
def test_a_malformed_call_stays_visible(service: PolicyService, text: str, opening: str) -> None:
    written = text if opening == SILENT else f"hm\n</think>\n\n{text}"
    answer = read(service, f"{written}<|im_end|>", opening)
    assert (answer.content, answer.tool_calls) == (text, [])
    assert answer.reasoning == ("" if opening == SILENT else "hm")


def test_without_tools_nothing_is_parsed_as_a_call(service: PolicyService) -> None:
    answer = read(service, CALL, tools=[])
    assert (answer.content, answer.tool_calls) == (CALL, [])


MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<|im_start|>", CALL]
TEXTS = ["assistant\n", "\n\n", " ", "é", "<function=bash>\n", "</function>\n", "<parameter=a>\nls\n</parameter>\n"]
PIECES = st.sampled_from(MARKS + TEXTS)


@settings(max_examples=300)
@given(
    pieces=st.lists(PIECES | st.text(max_size=4), max_size=8),
    raw=st.lists(st.integers(0, 300), max_size=3),
    opening=st.sampled_from([SILENT, THINKING, "<|im_start|>assistant\n", ""]),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    held=st.integers(0, 3),
)
def test_what_is_shown_early_begins_what_is_said_in_the_end(
    service: PolicyService, pieces: list[str], raw: list[int], opening: str, sizes: list[int], held: int
) -> None:
    """Any tokens at all, in chunks of any size: the stream joins to the whole answer."""
    tokens = [*raw, *service.tokenizer.encode("".join(pieces))]
    prompt = service.tokenizer.encode("<|im_start|>user\nhi<think><|im_end|>\n" + opening)
    live = LiveAnswer(
        service.vocabulary, service.markers, reasoning_open=service.markers.reasoning_open(prompt), held=held
    )
    shown = {"reasoning": "", "content": ""}
    rest = list(tokens)
    for size in itertools.cycle(sizes):
        for part, text in live.add(rest[:size]).items():
            shown[part] += text
        rest = rest[size:]
        if not rest:
            break
    answer = read_answer(service, tokens, prompt=prompt, tools=[BASH])
    assert answer.reasoning.startswith(shown["reasoning"])
    assert answer.content.startswith(shown["content"])
    for part, text in live.close(answer).items():
        shown[part] += text
    assert shown == {"reasoning": answer.reasoning, "content": answer.content}
