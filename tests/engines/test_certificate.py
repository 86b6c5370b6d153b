# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The certificate says what the gateway will meet: which steps append, which fork, and at which token."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from nemo_gym_polar.engines.certificate import Certificate, Step, certify
from nemo_gym_polar.engines.families import History
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.tokens import Int32
from tests.engines.test_families import family


def steps(certificate: Certificate) -> dict[str, Step]:
    return {step.name: step for step in certificate.steps}


def verdicts(directory: Path, name: str = "qwen3.5", history: History = "strip", **options: bool) -> dict[str, str]:
    found = certify(Rendering.load(directory, name, options, history=history))
    return {step.name: step.verdict for step in found.steps}


def test_without_thinking_nothing_forks(model_directory: Path) -> None:
    found = verdicts(model_directory, enable_thinking=False)
    thinking = {name for name in found if "thinking" in name}
    assert {found[name] for name in found.keys() - thinking} == {"stable"}
    assert {found[name] for name in thinking} == {"kept"}  # thinking that was not asked for


def test_strip_forks_at_the_thinking_and_only_when_the_user_speaks(thinking: Rendering) -> None:
    found = steps(certify(thinking))
    fork = found["assistant with thinking→user"]
    assert (fork.verdict, fork.appends) == ("forks", False)
    assert fork.difference is not None
    assert fork.difference.known_text == "<think>"
    assert fork.difference.rendered_text == "H"  # of "Here is what I found."
    within = found["assistant with thinking and calls→tool"]
    assert (within.verdict, within.appends, within.difference) == ("stable", True, None)
    assert found["a tool's result and a user's word"].verdict == "forks"


def test_keep_goes_on_where_the_template_would_drop(model_directory: Path) -> None:
    stripped = verdicts(model_directory, enable_thinking=True)
    kept = verdicts(model_directory, history="keep", enable_thinking=True)
    forks = {name for name, verdict in stripped.items() if verdict == "forks"}
    assert forks > {"assistant with thinking→user", "answer cut by length", "system in the middle"}
    assert {name for name, verdict in kept.items() if verdict == "forks"} == {"empty answer"}
    assert {kept[name] for name in forks - {"empty answer"}} == {"kept"}


def test_another_tokenisation_is_found_though_the_text_is_the_same(thinking: Rendering) -> None:
    """An answer that closes its thinking at once is sampled as two newlines, and rendered as one token of both."""
    step = steps(certify(thinking))["user→assistant"]
    assert step.verdict == "kept"
    assert step.difference is not None
    assert (step.difference.known_text, step.difference.rendered_text) == ("\n", "\n\n")


@pytest.mark.parametrize("name", ["llama-3", "kimi-k2", "glm-4.5", "qwen3", "nemotron-3"])
def test_other_families_have_one(name: str, tmp_path: Path) -> None:
    found = verdicts(family(tmp_path, name), name)
    assert found["assistant with tool calls→tool"] in {"stable", "kept"}
    assert "differs" not in found.values()
    assert ("unsupported" in found.values()) is (name == "llama-3")  # it has one call per answer
    has_thinking = name not in {"llama-3", "kimi-k2"}
    assert (found["assistant with thinking→user"] == "forks") is has_thinking


def test_the_model_s_own_template_is_stable_where_it_is(model_directory: Path) -> None:
    rendering = Rendering.load(model_directory, "default", {"tool_parser": "qwen3.5", "reasoning_parser": "think"})
    found = steps(certify(rendering))
    assert found["assistant with text→user"].verdict == "stable"
    assert not found["assistant with text→user"].appends
    assert found["assistant with thinking→user"].verdict == "forks"


def test_a_renderer_that_adds_something_else_is_caught(model_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendering = Rendering.load(model_directory, "qwen3.5", {"enable_thinking": False})
    right = rendering.extend

    def wrong(*arguments: object) -> Int32:
        added = right(*arguments)  # type: ignore[arg-type]
        assert added is not None
        return np.concatenate((added[:5], added[4:]))

    monkeypatch.setattr(rendering, "extend", wrong)
    step = steps(certify(rendering))["assistant with text→user"]
    assert step.verdict == "differs"
    assert step.difference is not None


def test_a_step_that_a_renderer_fails_at_is_named(model_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendering = Rendering.load(model_directory, "qwen3.5", {"enable_thinking": False})

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(rendering, "extend", fail)
    found = certify(rendering).steps
    assert {step.verdict for step in found if step.reason is None} == {"stable", "kept"}  # those to an answer
    assert {step.reason for step in found if step.verdict == "unsupported"} == {"AssertionError"}


def test_it_says_what_it_is_of(model_directory: Path, thinking: Rendering) -> None:
    certificate = certify(thinking)
    assert certificate.tokenizer == sha256((model_directory / "tokenizer.json").read_bytes()).hexdigest()
    template = (model_directory / "chat_template.jinja").read_bytes()
    assert certificate.template == sha256(template).hexdigest()
    plain = json.loads(json.dumps(certificate.plain()))
    assert (plain["renderer"], plain["options"], plain["history"]) == ("qwen3.5", {"enable_thinking": True}, "strip")
    assert len(plain["steps"]) == len(certificate.steps) == 13
    line = certificate.line()
    assert "\n" not in line
    assert "assistant with thinking→user" in json.loads(line)["forks"]


def test_it_is_quick(thinking: Rendering) -> None:
    certify(thinking)
    started = process_time()
    certify(thinking)
    assert process_time() - started < 0.5
