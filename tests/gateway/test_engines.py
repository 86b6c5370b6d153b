# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whole sessions on every engine and mode: what is recorded is what was sampled, or there is an error that says why."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.tokens import VersionSpan
from tests.support.fake_engine import FakeEngine, bash
from tests.support.fake_nemo_rl import FakeNeMoRL
from tests.support.fake_sglang import FakeSGLang, routes
from tests.support.gateways import Bench, Reply, bench, chat, result, user

# Sampled with blanks that no template would render again.
UNUSUAL = "<tool_call>\n<function=bash>\n<parameter=command>\n\n  ls  \n</parameter>\n</function>\n</tool_call>"


@dataclass(frozen=True)
class Setup:
    """An engine as a user would have it. `splices` where a chain survives an answer that is rendered differently."""

    kind: str
    mode: Literal["tokens", "chat"]
    fake: Callable[..., FakeEngine]
    path: str
    splices: bool
    options: dict[str, Any] = field(default_factory=dict)
    versions: bool = True


SETUPS = {
    "vllm-tokens": Setup("vllm", "tokens", FakeEngine, "/inference/v1/generate", splices=True),
    "vllm-chat": Setup("vllm", "chat", FakeEngine, "/v1/chat/completions", splices=False, versions=False),
    "embedded": Setup("embedded", "tokens", FakeEngine, "/inference/v1/generate", splices=True),
    "sglang-tokens": Setup("sglang", "tokens", FakeSGLang, "/generate", splices=True),
    "sglang-chat": Setup("sglang", "chat", FakeSGLang, "/v1/chat/completions", splices=False),
    "sglang-sglext": Setup("sglang", "chat", FakeSGLang, "/v1/chat/completions", False, {"sglext": True}),
    "nemo_rl": Setup("nemo_rl", "chat", FakeNeMoRL, "/v1/chat/completions", splices=True, versions=False),
    "openai-tokens": Setup("openai", "tokens", FakeEngine, "/v1/completions", splices=True, versions=False),
    "openai-chat": Setup("openai", "chat", FakeEngine, "/v1/chat/completions", splices=False, versions=False),
    "openai-sglang": Setup("openai", "chat", FakeSGLang, "/v1/chat/completions", splices=False),
}
ALL = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


@contextlib.asynccontextmanager
async def standing(setup: Setup, model_directory: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    async with (
        setup.fake(model_directory, version="step-3", **setup.options) as engine,
        bench(engine, tmp_path / "journals", mode=setup.mode, engine_fields={"kind": setup.kind}) as stand,
    ):
        yield stand


async def say(stand: Bench, session: Any, history: list[dict[str, Any]]) -> Reply:
    """One call; its answer, and what its tools gave, are added to the history."""
    reply = await stand.post(session, chat(*history, temperature=0.3, top_p=0.4, seed=5, max_tokens=300))
    assert reply.status == 200, reply.body
    history.append(reply.message)
    history += [result(call["id"], "a b c") for call in reply.message.get("tool_calls") or []]
    return reply


@ALL
async def test_three_turns_are_recorded_as_they_were_sampled(
    setup: Setup, model_directory: Path, tmp_path: Path
) -> None:
    async with standing(setup, model_directory, tmp_path) as stand:
        answers = iter([bash("ls"), "I looked.\n\n" + bash("touch a"), "Done."])
        stand.engine.script = lambda _: next(answers)
        session = await stand.gateway.open()
        history = [{"role": "system", "content": "You are an assistant."}, user("Look around.")]
        for _ in range(3):
            await say(stand, session, history)
        forest = await stand.gateway.finish(session.id)
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    for turn, served in zip(forest.turns, stand.engine.served, strict=True):
        assert served.path == setup.path
        assert forest.context(turn.index).tolist() == served.context
        assert turn.sampled.tolist() == served.sampled
        assert np.array_equal(turn.logprobs, np.array(served.logprobs, np.float32))
        assert turn.versions == ((VersionSpan("step-3", 0, len(served.sampled)),) if setup.versions else ())
        assert not turn.flags
        assert (served.parameters["temperature"], served.parameters["top_p"]) == (1.0, 1.0)
        assert served.parameters["max_tokens"] <= 300
    (trace,) = build(forest).traces
    assert trace.trained_tokens == sum(len(served.sampled) for served in stand.engine.served)


@ALL
async def test_an_answer_that_renders_differently_is_never_spliced_blindly(
    setup: Setup, model_directory: Path, tmp_path: Path
) -> None:
    async with standing(setup, model_directory, tmp_path) as stand:
        stand.engine.script = lambda text: "Done." if "<tool_response>" in text else UNUSUAL
        session = await stand.gateway.open()
        history = [user("Look around.")]
        await say(stand, session, history)
        await say(stand, session, history)
        turn = session.forest[1]
        assert turn.edge is (Edge.CONTINUE if setup.splices else Edge.ROOT)
        assert session.forest.context(1).tolist() == stand.engine.served[1].context


@ALL
async def test_an_answer_cut_short_goes_on(setup: Setup, model_directory: Path, tmp_path: Path) -> None:
    """It has no end token; the next prompt closes its turn."""
    async with standing(setup, model_directory, tmp_path) as stand:
        stand.engine.script = lambda _: "one two three four five six seven"
        session = await stand.gateway.open()
        first = await stand.post(session, chat(user("Count."), max_tokens=3))
        assert first.json["choices"][0]["finish_reason"] == "length"
        reply = await stand.post(session, chat(user("Count."), first.message, user("Go on.")))
        assert reply.status == 200
        assert session.forest[1].edge is Edge.CONTINUE
        assert session.forest.context(1).tolist() == stand.engine.served[1].context


FAULTS: dict[str, dict[str, tuple[int, str, str]]] = {
    "sglang-tokens": {
        "text_only": (502, "no_ids", "a router in between"),
        "no_logprobs": (502, "no_logprobs", "a router in between"),
        "nan": (502, "not_finite", "log-probability 0 is None"),
        "positive": (502, "misaligned", "not above 0"),
        "misaligned": (502, "misaligned", "output_token_logprobs"),
        "other_ids": (502, "misaligned", "other tokens"),
        "short_read": (502, "misaligned", "tokens of the"),
        "abort": (503, "aborted", "Abort in waiting queue"),
    },
    "sglang-chat": {
        "text_only": (502, "no_ids", "engine.mode=tokens"),
        "no_logprobs": (502, "no_logprobs", "a router in between"),
        "nan": (502, "not_finite", "log-probability 0 is None"),
        "positive": (502, "misaligned", "not above 0"),
        "misaligned": (502, "misaligned", "log-probabilities"),
        "other_ids": (502, "misaligned", "other tokens"),
        "abort": (503, "aborted", "aborted"),
    },
    "nemo_rl": {
        "text_only": (502, "no_logprobs", "generation_token_ids"),
        "null_ids": (502, "no_ids", "prompt_token_ids"),
        "no_logprobs": (502, "no_logprobs", "generation_log_probs"),
        "nan": (502, "not_finite", "log-probability 0 is None"),
        "positive": (502, "misaligned", "not above 0"),
        "minus_infinity": (502, "not_finite", "minus infinity"),
        "misaligned": (502, "misaligned", "log-probabilities"),
        "other_ids": (502, "misaligned", "other tokens"),
        "abort": (503, "aborted", "aborted"),
        "500": (502, "status", "policy.generation.temperature"),
    },
    "openai-chat": {
        "no_ids": (502, "no_ids", "helper models only"),
        "no_logprobs": (502, "no_logprobs", "a router in between"),
        "nan": (502, "not_finite", "log-probability 0 is None"),
        "misaligned": (502, "misaligned", "log-probabilities"),
    },
}
COMMON: dict[str, tuple[int, str, str]] = {
    "html": (502, "malformed", "not JSON"),
    "400": (400, "status", "temperature"),
    "overflow": (400, "overflow", "maximum context length"),
    "429": (429, "overloaded", "slow down"),
}
CASES = [
    pytest.param(SETUPS[name], fault, *expected, id=f"{name}-{fault}")
    for name, own in FAULTS.items()
    for fault, expected in {**own, **COMMON}.items()
]


@pytest.mark.parametrize(("setup", "fault", "status", "counted", "said"), CASES)
async def test_a_fault_is_an_error_with_its_cause(
    setup: Setup, fault: Any, status: int, counted: str, said: str, model_directory: Path, tmp_path: Path
) -> None:
    async with standing(setup, model_directory, tmp_path) as stand:
        stand.engine.faults.append(fault)
        session = await stand.gateway.open()
        reply = await stand.post(session, chat(user("hi")))
        assert (reply.status, said in reply.error["message"]) == (status, True), reply.body
        assert f'polar_engine_faults_total{{fault="{counted}"}} 1.0' in stand.gateway.metrics.text().decode()
        assert [turn.status for turn in session.forest.turns] == [Status.FAILED]
        assert (await stand.post(session, chat(user("hi")))).status == 200
        forest = await stand.gateway.finish(session.id)
        assert build(forest).trained_tokens == len(stand.engine.served[-1].sampled)


@pytest.mark.parametrize("name", ["sglang-tokens", "sglang-chat", "nemo_rl", "openai-chat"])
async def test_a_session_moves_from_a_dead_replica_and_stays(name: str, model_directory: Path, tmp_path: Path) -> None:
    setup = SETUPS[name]
    async with (
        setup.fake(model_directory) as first,
        setup.fake(model_directory) as second,
        bench(
            first,
            tmp_path / "j",
            mode=setup.mode,
            more_urls=(second.url + "/v1",),
            engine_fields={"kind": setup.kind},
        ) as stand,
    ):
        sessions = [await stand.gateway.open() for _ in range(2)]
        for _ in range(2):
            for session in sessions:
                assert (await stand.post(session, chat(user("hi")))).status == 200
        assert (len(first.served), len(second.served)) == (2, 2)
        await first.__aexit__(None, None, None)
        for session in sessions:
            assert (await stand.post(session, chat(user("again")))).status == 200
        assert len(second.served) == 4


@pytest.mark.parametrize("bounded", [True, False], ids=["only the new tokens", "all tokens each time"])
async def test_routed_experts_come_through_to_the_trace(bounded: bool, model_directory: Path, tmp_path: Path) -> None:
    async with (
        FakeSGLang(model_directory, experts=6, experts_from_start=bounded) as engine,
        bench(engine, tmp_path / "journals", engine_fields={"kind": "sglang", "routed_experts": 6}) as stand,
    ):
        answers = iter([bash("ls"), bash("touch a"), "Done."])
        engine.script = lambda _: next(answers)
        session = await stand.gateway.open()
        history = [user("Look around.")]
        for _ in range(3):
            await say(stand, session, history)
        forest = await stand.gateway.finish(session.id)
    assert [len(turn.side["routed_experts"]) for turn in forest.turns] == [
        len(turn.delta) + len(turn.sampled) for turn in forest.turns
    ]
    (trace,) = build(read_journal(tmp_path / "journals" / f"{session.id}.journal")).traces
    expected = routes(trace.token_ids.tolist(), 6)
    expected[[turn.length - 1 for turn in forest.turns]] = -1
    assert np.array_equal(trace.side["routed_experts"], expected)


@pytest.mark.parametrize(("experts", "told"), [(0, "enable-return-routed-experts"), (5, "layers times top-k")])
async def test_experts_that_do_not_fit_are_refused(
    experts: int, told: str, model_directory: Path, tmp_path: Path
) -> None:
    async with (
        FakeSGLang(model_directory, experts=experts) as engine,
        bench(engine, tmp_path / "journals", engine_fields={"kind": "sglang", "routed_experts": 7}) as stand,
    ):
        session = await stand.gateway.open()
        reply = await stand.post(session, chat(user("Hello.")))
        assert (reply.status, told in reply.json["error"]["message"]) == (502, True)
