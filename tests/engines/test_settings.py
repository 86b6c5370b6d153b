# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine by its kind: which client, which mode, and what its log-probabilities are of."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nemo_gym_polar.engines.base import Logprobs
from nemo_gym_polar.engines.factory import ChatMode, EngineSettings, TokensMode, make_engine
from nemo_gym_polar.engines.nemo_rl import NeMoRL
from nemo_gym_polar.engines.openai import OpenAI
from nemo_gym_polar.engines.sglang import SGLang
from nemo_gym_polar.engines.vllm import VLLM
from tests.support.fake_engine import FakeEngine

WHERE: dict[str, Any] = {"urls": ("http://127.0.0.1:9",), "model": "m"}


@pytest.mark.parametrize(
    ("kind", "client", "logprobs"),
    [
        ("vllm", VLLM, "raw"),
        ("embedded", VLLM, "processed"),
        ("sglang", SGLang, "scaled"),
        ("openai", OpenAI, "raw"),
        ("nemo_rl", NeMoRL, "processed"),
    ],
)
def test_every_kind_has_its_client_and_meaning(engine: FakeEngine, kind: Any, client: type, logprobs: Logprobs) -> None:
    made = make_engine(EngineSettings(**WHERE, kind=kind, mode="chat"))
    assert isinstance(made, ChatMode)
    assert (type(made.engine), made.logprobs) == (client, logprobs)
    assert make_engine(EngineSettings(**WHERE, kind=kind, mode="chat", logprobs="processed")).logprobs == "processed"
    if kind != "nemo_rl":
        tokenizer = str(engine.tokenizer_directory)
        made = make_engine(EngineSettings(**WHERE, kind=kind, mode="tokens", tokenizer=tokenizer))
        assert isinstance(made, TokensMode)
        assert (type(made.engine), made.logprobs) == (client, logprobs)


def test_kinds_that_render_themselves_are_asked_to_chat() -> None:
    assert EngineSettings(**WHERE, kind="nemo_rl").mode == "chat"
    assert EngineSettings(**WHERE, kind="openai").mode == "chat"
    assert EngineSettings.model_validate({**WHERE, "kind": "sglang", "mode": None, "tokenizer": "x"}).mode == "tokens"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "tgi"}, "kind"),
        ({"kind": "sglang"}, r"engine\.tokenizer is not set"),
        ({"kind": "nemo_rl", "mode": "tokens"}, r"takes messages only; set engine\.mode=chat"),
        ({"mode": "chat", "logprobs": "sharp"}, "logprobs"),
        (
            {"mode": "chat", "helpers": {"m": {"url": "http://x", "model": "y"}}},
            r"helpers\.m is the policy's own",
        ),
        ({"mode": "chat", "helpers": {"fast": {"url": "http://x"}}}, r"helpers\.fast\.model"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        EngineSettings(**WHERE, **given)
