# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Other families than Qwen3.5, the model's own template, and what to do where a renderer doesn't fit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from nemo_gym_polar.chat import Conversation, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.engines import openai_wire
from nemo_gym_polar.engines.rendering import Rendering
from tests.support.tiny_model import make_model

BASH = Tool("bash", "Run", {"type": "object", "properties": {"command": {"type": "string"}}})
LLAMA = ["begin_of_text", "end_of_text", "start_header_id", "end_header_id", "eot_id", "eom_id", "python_tag"]
KIMI = ["im_assistant", "im_end", "im_middle", "im_system", "im_user", "tool_call_argument_begin", "tool_call_begin"]
KIMI += ["tool_call_end", "tool_calls_section_begin", "tool_calls_section_end"]
GLM = ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<arg_key>", "</arg_key>"]
GLM += ["<arg_value>", "</arg_value>"]
MARKERS = {
    "llama-3": [f"<|{name}|>" for name in LLAMA],
    "kimi-k2": [*(f"<|{name}|>" for name in KIMI), "[EOS]"],
    "glm-4.5": GLM,
    "qwen3": [],
    "nemotron-3": [],
}
CALLS = {
    "llama-3": '{"name": "bash", "parameters": {"command": "ls"}}<|eot_id|>',
    "kimi-k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
    '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|><|im_end|>',
    "glm-4.5": "\n<think>Look.</think>\n<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n"
    "</tool_call><|observation|>",
    "qwen3": '<think>\nLook.\n</think>\n\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
    "<|im_end|>",
    "nemotron-3": "Look.\n</think>\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n"
    "</tool_call><|im_end|>",
}


def family(directory: Path, name: str) -> Path:
    """A model directory with that family's markers."""
    make_model(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.add_special_tokens(MARKERS[name])
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def user(text: str) -> Message:
    return Message("user", (Text(text),))


@pytest.mark.parametrize("name", MARKERS)
async def test_a_family_reads_its_calls_and_goes_on_from_them(name: str, tmp_path: Path) -> None:
    rendering = Rendering.load(family(tmp_path, name), name)
    assert rendering.source.renderer == name
    prompt = await rendering.prompt(Conversation((Message("system", (Text("Be brief."),)), user("Look.")), (BASH,)))
    sampled = np.array(rendering.tokenizer.encode(CALLS[name]), np.int32)
    assert sampled[-1] in rendering.stop_token_ids
    answer = rendering.parse(prompt, sampled, (BASH,), allow_calls=True, mint=lambda: "functions.bash:0")
    (call,) = answer.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("bash", {"command": "ls"})
    result = Message("tool", (ToolResult(call.id, (Text("hello.txt"),), name="bash"),))
    added = await rendering.extension(prompt, sampled, (result,), (BASH,))
    assert added is not None
    assert "hello.txt" in rendering.tokenizer.decode(added.tolist())
    assert "Look." not in rendering.tokenizer.decode(added.tolist())


def test_a_family_that_is_not_the_tokenizer_s_is_refused(model_directory: Path) -> None:
    with pytest.raises(ValueError, match=r"engine\.renderer=llama-3: .*begin_of_text.*not of that family.*default"):
        Rendering.load(model_directory, "llama-3")


def test_a_vocabulary_that_is_not_here_names_the_remedy(model_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import renderers

    def missing(*_: object) -> None:
        raise RuntimeError("failed to load vocab file")

    monkeypatch.setattr(renderers, "create_renderer", missing)
    with pytest.raises(ValueError, match=r"engine\.renderer=gpt-oss: failed to load.*TIKTOKEN_ENCODINGS_BASE"):
        Rendering.load(model_directory, "gpt-oss")


def test_auto_knows_exact_names_only(model_directory: Path) -> None:
    assert Rendering.load(model_directory, "auto", model="Qwen/Qwen3-8B").source.renderer == "qwen3"
    assert Rendering.load(model_directory, "auto", model="my-qwen").source.renderer == "default"


def test_an_option_that_is_none_is_named(model_directory: Path) -> None:
    with pytest.raises(ValueError, match=r"engine\.renderer_options: thinks: .*qwen3\.5"):
        Rendering.load(model_directory, "qwen3.5", {"thinks": True})
    with pytest.raises(ValueError, match=r"renderer_options\.thinking_retention: set engine\.history"):
        Rendering.load(model_directory, "qwen3.5", {"thinking_retention": "all"})


# The model's own template


CONVERSATION = Conversation(
    (
        Message("system", (Text("Be brief."),)),
        user("Look."),
        Message("assistant", (Reasoning("Hm."), Text("I will."), ToolCall("c", "bash", '{"command":"ls"}'))),
        Message("tool", (ToolResult("c", (Text("a"),)),)),
    ),
    (BASH,),
)


async def test_the_model_s_own_template_is_what_transformers_makes_of_it(model_directory: Path) -> None:
    rendering = Rendering.load(model_directory, "default")
    messages: list[dict[str, Any]] = openai_wire.messages(CONVERSATION.messages)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    theirs = AutoTokenizer.from_pretrained(model_directory).apply_chat_template(
        messages, tools=openai_wire.tools((BASH,)), add_generation_prompt=True, return_dict=False
    )
    assert (await rendering.prompt(CONVERSATION)).tolist() == theirs


async def test_the_model_s_own_template_reads_with_named_parsers(model_directory: Path) -> None:
    options = {"enable_thinking": True, "tool_parser": "qwen3.5", "reasoning_parser": "think"}
    rendering = Rendering.load(model_directory, "default", options)
    prompt = await rendering.prompt(Conversation((user("Look."),), (BASH,)))
    assert rendering.tokenizer.decode(prompt.tolist()).endswith("<think>\n")
    sampled = np.array(rendering.tokenizer.encode(CALLS["nemotron-3"]), np.int32)
    answer = rendering.parse(prompt, sampled, (BASH,), allow_calls=True, mint=lambda: "c")
    assert answer.reasoning.strip() == "Look."
    assert [call.name for call in answer.tool_calls] == ["bash"]
    assert await rendering.extension(prompt, sampled, (user("And now?"),), (BASH,)) is None


def test_the_model_s_own_template_needs_no_transformers(model_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert len(Rendering.load(model_directory, "default").render(CONVERSATION)) > 50


def test_without_a_template_there_is_no_default(tmp_path: Path) -> None:
    make_model(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match=r"neither chat_template\.jinja nor.*name the model's family"):
        Rendering.load(tmp_path, "default")


def test_a_template_knows_markers_and_the_day_and_what_is_generated(tmp_path: Path) -> None:
    make_model(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(
        "{{ bos_token }}{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
        "{{ strftime_now('%Y') | length }}{{ eos_token }}"
    )
    config = {"bos_token": {"content": "<|im_start|>"}, "eos_token": "<|endoftext|>", "unk_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    rendering = Rendering.load(tmp_path, "default")
    text = rendering.tokenizer.decode(rendering.render(Conversation((user("Hi."),))).tolist())
    assert text == "<|im_start|>Hi.4<|endoftext|>"
    assert rendering.stop_token_ids == (rendering.tokenizer.convert_tokens_to_ids("<|endoftext|>"),)


def test_the_default_can_t_keep(model_directory: Path) -> None:
    with pytest.raises(ValueError, match=r"engine\.history=keep: the renderer default"):
        Rendering.load(model_directory, "default", history="keep")
