# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A turn is trained on only if its log-probabilities are those of the draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.engines.base import Logprobs
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Flag
from nemo_gym_polar.gateway.flags import sampling_flags
from nemo_gym_polar.gateway.settings import SamplingProfile
from tests.support.fake_engine import FakeEngine
from tests.support.fake_nemo_rl import FakeNeMoRL
from tests.support.fake_sglang import FakeSGLang
from tests.support.gateways import bench, chat, user

PLAIN, WARM, GREEDY = SamplingProfile(), SamplingProfile(temperature=0.7), SamplingProfile(temperature=0.0)
NUCLEUS, TOP_K = SamplingProfile(top_p=0.9), SamplingProfile(top_k=20)


@pytest.mark.parametrize(
    ("profile", "logprobs", "flags"),
    [
        (PLAIN, "raw", set()),
        (PLAIN, "scaled", set()),
        (PLAIN, "processed", set()),
        (WARM, "raw", {Flag.TEMPERATURE}),
        (WARM, "scaled", set()),
        (WARM, "processed", set()),
        (GREEDY, "raw", {Flag.TEMPERATURE}),
        (GREEDY, "scaled", {Flag.TEMPERATURE}),
        (GREEDY, "processed", {Flag.TEMPERATURE}),
        (NUCLEUS, "raw", {Flag.TRUNCATED}),
        (NUCLEUS, "scaled", {Flag.TRUNCATED}),
        (NUCLEUS, "processed", set()),
        (TOP_K, "scaled", {Flag.TRUNCATED}),
    ],
)
def test_what_a_profile_does_to_a_meaning(profile: SamplingProfile, logprobs: Logprobs, flags: set[Flag]) -> None:
    assert sampling_flags(profile, logprobs, constrained=False) == flags
    assert sampling_flags(profile, logprobs, constrained=True) == {*flags, Flag.CONSTRAINED}


@pytest.mark.parametrize(
    ("fake", "mode", "fields", "flags"),
    [
        (FakeEngine, "tokens", {"kind": "vllm"}, {Flag.TEMPERATURE, Flag.TRUNCATED}),
        (FakeEngine, "tokens", {"kind": "vllm", "logprobs": "processed"}, set()),
        (FakeSGLang, "tokens", {"kind": "sglang"}, {Flag.TRUNCATED}),
        (FakeSGLang, "chat", {"kind": "sglang", "logprobs": "raw"}, {Flag.TEMPERATURE, Flag.TRUNCATED}),
        (FakeNeMoRL, "chat", {"kind": "nemo_rl"}, set()),
        (FakeNeMoRL, "chat", {"kind": "nemo_rl", "logprobs": "raw"}, {Flag.TEMPERATURE, Flag.TRUNCATED}),
    ],
)
async def test_every_engine_s_turns_are_flagged_by_what_it_reports(
    fake: Any, mode: Any, fields: dict[str, Any], flags: set[Flag], model_directory: Path, tmp_path: Path
) -> None:
    sampling = SamplingProfile(temperature=0.7, top_p=0.9)
    async with (
        fake(model_directory) as engine,
        bench(engine, tmp_path / "j", mode=mode, engine_fields=fields, sampling=sampling) as stand,
    ):
        if isinstance(engine, FakeNeMoRL):
            engine.temperature, engine.top_p = 0.7, 0.9
        session = await stand.gateway.open()
        assert (await stand.post(session, chat(user("hi")))).status == 200
        forest = await stand.gateway.finish(session.id)
    assert forest[0].flags == flags
    assert bool(build(forest).trained_tokens) is not bool(flags)


SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


@pytest.mark.parametrize(("fake", "kind"), [(FakeEngine, "vllm"), (FakeSGLang, "sglang"), (FakeNeMoRL, "nemo_rl")])
async def test_a_grammar_is_flagged_and_a_forced_tool_is_not_asked_for(
    fake: Any, kind: str, model_directory: Path, tmp_path: Path
) -> None:
    async with (
        fake(model_directory) as engine,
        bench(engine, tmp_path / "j", mode="chat", engine_fields={"kind": kind}) as stand,
    ):
        session = await stand.gateway.open()
        await stand.post(session, chat(user("hi"), response_format=SCHEMA))
        await stand.post(
            session,
            chat(user("ho"), tool_choice="required", logit_bias={"5": 9}, frequency_penalty=1, presence_penalty=1),
        )
    constrained, free = session.forest.turns
    assert (constrained.flags, free.flags) == ({Flag.CONSTRAINED}, frozenset())
    asked = stand.engine.served[1].parameters
    assert not {"tool_choice", "logit_bias", "seed"} & asked.keys()
    assert (asked["frequency_penalty"], asked["presence_penalty"]) == (0.0, 0.0)


async def test_in_tokens_mode_no_grammar_is_asked_for(engine: FakeEngine, tmp_path: Path) -> None:
    async with bench(engine, tmp_path / "j") as stand:
        session = await stand.gateway.open()
        await stand.post(session, chat(user("hi"), response_format=SCHEMA))
    assert session.forest[0].flags == frozenset()
    assert "response_format" not in engine.served[0].parameters
