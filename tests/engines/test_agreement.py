# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Texts may be encoded after rendering only where that changes no token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Conversation, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.engines.agreement import agree
from nemo_gym_polar.engines.encoded import EncodedTexts
from nemo_gym_polar.engines.rendering import Rendering, Source
from nemo_gym_polar.engines.tokenizer import FileTokenizer

texts = st.text(max_size=80)
parts = {
    "user": st.builds(lambda text: (Text(text or "-"),), texts),
    "assistant": st.builds(
        lambda thought, text, command: (Reasoning(thought), Text(text), ToolCall("c", "bash", f'{{"a": {command}}}')),
        texts, texts, st.integers(),
    ),
    "tool": st.builds(lambda text: (ToolResult("c", (Text(text),)),), texts),
}  # fmt: skip
messages = st.sampled_from(sorted(parts)).flatmap(lambda role: st.builds(Message, st.just(role), parts[role]))
TOOLS = (Tool("bash", "Run a command in the shell of this machine", {"type": "object"}),)


def plain(rendering: Rendering) -> Rendering:
    return Rendering(rendering.tokenizer, rendering._renderer, rendering.source)


@given(st.lists(messages))
def test_a_prompt_has_the_same_tokens_either_way(rendering: Rendering, history: list[Message]) -> None:
    assert rendering._texts_last
    first = Message("user", (Text("This is what you are asked to do here."),))
    conversation = Conversation((first, *history), TOOLS)
    for _ in range(2):  # the second time from memory
        assert rendering.render(conversation).tolist() == plain(rendering).render(conversation).tolist()


def test_the_model_s_own_template_agrees(model_directory: Path) -> None:
    rendering = Rendering.load(model_directory, "default")
    assert rendering._texts_last
    assert agree(plain(rendering), rendering)


class Formats:
    """A chat format of words and a space."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self._encode = encode

    def render_ids(self, messages: list[dict[str, Any]], **_: Any) -> list[int]:
        return [token for message in messages for token in self._encode(str(message.get("content") or " "))]

    def bridge_to_next_turn(self, *_: Any, **__: Any) -> None: ...

    def get_stop_token_ids(self) -> list[int]:
        return [0]


def passes_on(tokenizer: FileTokenizer) -> Callable[[str], list[int]]:
    return tokenizer.encode


def looks_at(tokenizer: FileTokenizer) -> Callable[[str], list[int]]:
    return lambda text: [token for token in tokenizer.encode(text) if token % 2]


def keeps(tokenizer: FileTokenizer) -> Callable[[str], list[int]]:
    kept: dict[str, list[int]] = {}

    def encode(text: str) -> list[int]:
        return kept.setdefault(text, tokenizer.encode(text))

    return encode


@pytest.mark.parametrize(("encode", "agrees"), [(passes_on, True), (looks_at, False), (keeps, False)])
def test_a_renderer_that_looks_at_ids_or_keeps_them_is_found_out(
    encode: Callable[[FileTokenizer], Callable[[str], list[int]]], agrees: bool, model_directory: Path
) -> None:
    tokenizer = FileTokenizer.load(model_directory)
    source = Source(model_directory, "own", {}, "strip")
    renderer: Any = Formats(encode(tokenizer))
    one, other = Rendering(tokenizer, renderer, source), Rendering(tokenizer, renderer, source, texts_last=True)
    assert agree(one, other) is agrees


def test_an_exception_leaves_no_text_behind(rendering: Rendering) -> None:
    def fails() -> list[int]:
        rendering.tokenizer.encode("a text that is long enough to be left for later")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        rendering.tokenizer.rendered(fails, again=True)
    assert min(rendering.tokenizer.encode("a text that is long enough to be left for later")) >= 0


def test_encoded_texts_are_the_same_array_and_bounded() -> None:
    asked: list[str] = []

    def encode(text: str) -> list[int]:
        asked.append(text)
        return [len(text)] * len(text)

    encoded = EncodedTexts(encode, room=100)
    first = encoded.ids("a" * 40)
    assert encoded.ids("a" * 40) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    for length in range(41, 60):
        encoded.ids("b" * length)
        encoded.ids("a" * 40)
        assert encoded.size <= 100
    assert asked.count("a" * 40) == 1
    assert np.array_equal(encoded.ids("c" * 500), [500] * 500)
    assert encoded.size <= 100
