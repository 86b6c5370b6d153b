# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens mode: prompts are the template's, continuations exact, and answers read as servers read them."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Conversation, Image, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.engines import openai_wire
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.template import ChatTemplate
from nemo_gym_polar.tokens import Int32
from tests.support.fake_engine import END, bash

BASH = Tool("bash", "Run", {"type": "object", "properties": {"command": {"type": "string"}}})
NUMBERS = Tool("add", "Add", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "object"}}})


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def ids(rendering: Rendering, text: str) -> Int32:
    return np.array(rendering.tokenizer.encode(text), np.int32)


async def parse(rendering: Rendering, said: str, *tools: Tool, allow_calls: bool = True, prompt: str = "") -> Message:
    numbers = count()
    before = ids(rendering, prompt) if prompt else await rendering.prompt(Conversation((user("hi"),), tools))
    return rendering.parse(
        before, ids(rendering, said), tools, allow_calls=allow_calls, mint=lambda: f"call_{next(numbers)}"
    )


async def test_a_prompt_is_the_model_s_own_template(rendering: Rendering, model_directory: Path) -> None:
    conversation = Conversation(
        (
            Message("system", (Text("You are an expert."),)),
            user("Create hello.txt"),
            Message("assistant", (Text("I will."), ToolCall("c", "bash", '{"command":"touch hello.txt"}'))),
            Message("tool", (ToolResult("c", (Text("(no output)"),)),)),
        ),
        (BASH,),
    )
    text = ChatTemplate.load(model_directory).render(
        openai_wire.messages(conversation.messages), tools=openai_wire.tools(conversation.tools), enable_thinking=False
    )
    prompt = await rendering.prompt(conversation)
    assert rendering.tokenizer.decode(prompt.tolist()) == text
    assert prompt.tolist() == rendering.tokenizer.encode(text)


words = st.text(max_size=60)
turns = st.lists(
    st.one_of(
        st.builds(user, words.filter(str.strip)),
        st.lists(words, min_size=1, max_size=3).map(
            lambda texts: Message("tool", tuple(ToolResult(str(i), (Text(text),)) for i, text in enumerate(texts)))
        ),
    ),
    min_size=1,
    max_size=2,
)


@given(st.lists(st.tuples(words, turns), min_size=1, max_size=3), st.booleans())
async def test_a_continuation_is_its_parent_and_what_is_new(
    rendering: Rendering, exchanges: list[tuple[str, list[Message]]], cut: bool
) -> None:
    """Whatever was sampled, even cut off: old tokens stay, and the new ones don't depend on how much is looked at."""
    context = await rendering.prompt(Conversation((user("Begin."),), (BASH,)))
    for said, new in exchanges:
        sampled = ids(rendering, said + ("" if cut else END))
        added = await rendering.extension(context, sampled, new, (BASH,))
        assert added is not None
        whole = rendering._renderer.bridge_to_next_turn(
            context.tolist(), sampled.tolist(), openai_wire.messages(new), tools=openai_wire.tools((BASH,))
        )
        assert whole is not None
        context = np.concatenate((context, sampled, added))
        assert context.tolist() == whole.token_ids
        opening = rendering.tokenizer.decode(added.tolist())
        assert opening.startswith(END + "\n" if cut else "\n")
        assert opening.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


async def test_a_continuation_says_what_the_template_says(rendering: Rendering) -> None:
    first = (Message("system", (Text("Be brief."),)), user("Look."))
    context = await rendering.prompt(Conversation(first, (BASH,)))
    sampled = ids(rendering, bash("ls") + END)
    answer = rendering.parse(context, sampled, (BASH,), allow_calls=True, mint=lambda: "c")
    result = Message("tool", (ToolResult("c", (Text("a  b"),)),))
    added = await rendering.extension(context, sampled, (result,), (BASH,))
    assert added is not None
    whole = await rendering.prompt(Conversation((*first, answer, result), (BASH,)))
    extended = np.concatenate((context, sampled, added)).tolist()
    assert rendering.tokenizer.decode(extended) == rendering.tokenizer.decode(whole.tolist())


async def test_thinking_is_kept_within_a_task_and_a_new_question_starts_anew(thinking: Rendering) -> None:
    context = await thinking.prompt(Conversation((user("Look."),), (BASH,)))
    sampled = ids(thinking, "First I list.\n</think>\n\n" + bash("ls") + END)
    result = Message("tool", (ToolResult("c", (Text("a"),)),))
    assert await thinking.extension(context, sampled, (result,), (BASH,)) is not None
    assert await thinking.extension(context, sampled, (result, user("And now?")), (BASH,)) is None


async def test_an_answer_of_someone_else_is_no_continuation(rendering: Rendering) -> None:
    context = await rendering.prompt(Conversation((user("Look."),)))
    foreign = Message("assistant", (Text("I was never sampled."),))
    assert await rendering.extension(context, ids(rendering, "Yes." + END), (foreign, user("x")), ()) is None


async def test_later_system_messages_are_the_user_s(rendering: Rendering) -> None:
    first, second = Message("system", (Text("One."),)), Message("system", (Text("Two."),))
    text = rendering.tokenizer.decode(
        (await rendering.prompt(Conversation((first, second, user("a"), second)))).tolist()
    )
    assert text.count("<|im_start|>system") == 1
    assert "One.\n\nTwo.<|im_end|>" in text
    assert "<|im_start|>user\nTwo.<|im_end|>" in text


# Reading answers


async def test_text(rendering: Rendering) -> None:
    assert await parse(rendering, "Hello." + END) == Message("assistant", (Text("Hello."),))
    assert await parse(rendering, END) == Message("assistant", ())


async def test_parallel_calls_get_ids_in_order(rendering: Rendering) -> None:
    message = await parse(rendering, "Both.\n" + bash("ls") + "\n" + bash("pwd") + END, BASH)
    assert message.parts == (
        Text("Both."),
        ToolCall("call_0", "bash", '{"command":"ls"}'),
        ToolCall("call_1", "bash", '{"command":"pwd"}'),
    )


async def test_arguments_have_their_declared_types(rendering: Rendering) -> None:
    said = '<tool_call>\n<function=add>\n<parameter=a>\n3\n</parameter>\n<parameter=b>\n{"x": [1]}\n</parameter>\n'
    message = await parse(rendering, said + "</function>\n</tool_call>" + END, NUMBERS)
    assert orjson.loads(message.tool_calls[0].arguments) == {"a": 3, "b": {"x": [1]}}
    wrong = said.replace("3", "three") + "</function>\n</tool_call>" + END
    assert orjson.loads((await parse(rendering, wrong, NUMBERS)).tool_calls[0].arguments)["a"] == "three"


@pytest.mark.parametrize(
    "broken",
    [
        "<tool_call>\n<function=bash>\n<parameter=command>\nls",
        "<tool_call>\nls -la\n</tool_call>",
        '<tool_call>\n{"name": "bash"}\n</tool_call>',
    ],
)
async def test_a_broken_call_stays_visible(rendering: Rendering, broken: str) -> None:
    message = await parse(rendering, "I try.\n" + broken + END, BASH)
    assert message.parts == (Text("I try.\n" + broken),)


async def test_where_no_call_is_wanted_it_is_text(rendering: Rendering) -> None:
    message = await parse(rendering, bash("ls") + END, BASH, allow_calls=False)
    assert message.parts == (Text(bash("ls")),)


async def test_thinking_is_told_from_speaking(thinking: Rendering) -> None:
    message = await parse(thinking, "Hm.\n</think>\n\nYes." + END)
    assert message.parts == (Reasoning("Hm."), Text("Yes."))
    assert (await parse(thinking, "Hm, and then")).parts == (Reasoning("Hm, and then"),)


# Refusals


@pytest.mark.parametrize("part", [Image("data:image/png;base64,AA"), Opaque("chat", {"type": "input_audio"})])
async def test_what_is_no_text_is_refused(rendering: Rendering, part: Any) -> None:
    with pytest.raises(EngineError, match=r"engine\.mode=chat") as caught:
        await rendering.prompt(Conversation((Message("user", (part,)),)))
    assert caught.value.status == 400


async def test_what_the_format_can_t_express_is_refused(rendering: Rendering) -> None:
    with pytest.raises(EngineError, match="can't express"):
        await rendering.prompt(Conversation(()))


def test_a_wrong_name_or_directory_is_named(model_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"engine\.renderer.*qwen9"):
        Rendering.load(model_directory, "qwen9")
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        Rendering.load(tmp_path, "qwen3.5")


async def test_a_long_prompt_is_rendered_beside_the_loop(rendering: Rendering) -> None:
    long = await rendering.prompt(Conversation((user("word " * 5000),)))
    assert len(long) > 5000
    added = await rendering.extension(long, ids(rendering, "Yes." + END), (user("word " * 5000),), ())
    assert added is not None and len(added) > 5000
