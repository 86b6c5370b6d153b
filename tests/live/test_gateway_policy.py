# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway in front of the embedded policy's own server: both sides agree on every token and every logprob."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import aiohttp
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.engines.settings import EngineKind
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Flag
from nemo_gym_polar.gateway import Gateway, GatewaySettings, SamplingProfile, Session, serve
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.process import EngineProcess
from nemo_gym_polar.policy.tokenizer import make_tokenizer
from tests.support.gateways import chat, result, user
from tests.support.policies import saved, wild_policy
from tests.support.waiting import until


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer(seed_corpus(400), vocab_size=1024)


@pytest.fixture(scope="module")
def policies(tokenizer: Tokenizer) -> list[Qwen3ForCausalLM]:
    return [wild_policy(tokenizer, seed=1), wild_policy(tokenizer, seed=2)]


@pytest.fixture(scope="module")
def directories(
    policies: list[Qwen3ForCausalLM], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    return [saved(policy, tokenizer, tmp_path_factory.mktemp("policy")) for policy in policies]


@pytest.fixture
async def process(directories: list[Path], tmp_path: Path) -> AsyncIterator[EngineProcess]:
    async with EngineProcess(directories[0], log=tmp_path / "engine.log") as process:
        yield process


def gateway(
    process: EngineProcess,
    directory: Path,
    journals: Path,
    mode: Literal["tokens", "chat"],
    kind: EngineKind = "embedded",
    temperature: float = 1.0,
    max_tokens: int = 24,
) -> Gateway:
    engine = EngineSettings(
        kind=kind,
        urls=(process.url,),
        model="policy",
        mode=mode,
        tokenizer=str(directory),
        renderer_options={"enable_thinking": False},
    )
    profile = SamplingProfile(max_tokens=max_tokens, temperature=temperature)
    return Gateway(make_engine(engine), GatewaySettings(journals=journals, sampling=profile))


async def ask(client: aiohttp.ClientSession, url: str, session: Session, history: list[Any]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {session.secret}"}
    async with client.post(url + session.path + "/v1/chat/completions", json=chat(*history), headers=headers) as reply:
        assert reply.status == 200, await reply.text()
        message: dict[str, Any] = (await reply.json())["choices"][0]["message"]
        return message


async def test_logprobs_and_versions_are_the_policy_s_own(
    process: EngineProcess, policies: list[Qwen3ForCausalLM], directories: list[Path], tmp_path: Path
) -> None:
    """Four turns, new weights before the third: the one chain's logprobs are those of the weights it names."""
    async with (
        gateway(process, directories[0], tmp_path / "j", "tokens") as stand,
        serve(stand) as server,
        aiohttp.ClientSession() as client,
    ):
        session = await stand.open()
        history = [{"role": "system", "content": "Be brief."}, user("Say something.")]
        for turn in range(4):
            if turn == 2:
                await process.load_weights(directories[1], "1")
            message = await ask(client, server.url, session, history)
            calls = message.get("tool_calls", [])
            history += [message, *[result(call["id"], "ok") for call in calls], user(f"And then? {turn}")]
        forest = await stand.finish(session.id)
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, *[Edge.CONTINUE] * 3]
    (trace,) = build(forest).traces
    assert [span.version for span in trace.versions] == ["0", "0", "1", "1"]
    for version, policy in enumerate(policies):
        assert_logprobs(trace, str(version), policy)


def assert_logprobs(trace: Trace, version: str, policy: Qwen3ForCausalLM) -> None:
    """Recompute the trace in one forward pass and compare where `version` sampled."""
    with torch.no_grad():
        logits = policy(torch.from_numpy(trace.token_ids.astype(np.int64))[None]).logits[0].float()
    logprobs = torch.log_softmax(logits[:-1], -1).gather(
        1, torch.from_numpy(trace.token_ids[1:].astype(np.int64))[:, None]
    )
    own = np.zeros(len(trace), bool)
    for span in trace.versions:
        if span.version == version:
            own[span.start : span.end] = True
    own &= trace.loss_mask
    assert own.sum() > 20
    assert np.abs(logprobs[:, 0].numpy()[own[1:]] - trace.logprobs[own]).max() < 1e-4


@pytest.mark.parametrize("kind", ["embedded", "openai"])
async def test_new_weights_in_the_middle_of_answers(
    process: EngineProcess, directories: list[Path], tmp_path: Path, kind: EngineKind
) -> None:
    """The engine's own API says at which token they came; asked as any other server it doesn't, and nothing is sure."""
    async with (
        gateway(process, directories[0], tmp_path / "j", "tokens", kind, max_tokens=1500) as stand,
        serve(stand) as server,
        aiohttp.ClientSession() as client,
    ):
        stand.resume("0")
        session = await stand.open()
        calls = [asyncio.create_task(ask(client, server.url, session, [user(f"Go on. {i}")])) for i in range(6)]
        await until(lambda: stand.weights.generations.number == 6)
        await asyncio.sleep(0.1)
        await process.load_weights(directories[1], "1", in_flight="keep")
        stand.resume("1")
        await asyncio.gather(*calls)
        assert stand.policy_version == "1"
        forest = await stand.finish(session.id)
    built = build(forest)
    sampled = sum(len(turn.sampled) for turn in forest.turns)
    assert built.trained_tokens + sum(built.dropped.values()) == sampled
    if kind == "embedded":
        assert any([span.version for span in turn.versions] == ["0", "1"] for turn in forest.turns)
        assert built.trained_tokens == sampled
    else:
        crossing = [turn for turn in forest.turns if Flag.WEIGHTS_CHANGED in turn.flags]
        assert crossing
        assert dict(built.dropped) == {"weights_changed": sum(len(turn.sampled) for turn in crossing)}


async def test_both_modes_read_the_same_prompt(process: EngineProcess, directories: list[Path], tmp_path: Path) -> None:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You are an expert coding assistant.\n\n- Use bash."},
        user("Create a.txt"),
        {
            "role": "assistant",
            "content": "I will.",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "touch a.txt"}'}}
            ],
        },
        result("c", "(no output)"),
    ]
    contexts = []
    ways: list[tuple[EngineKind, Literal["tokens", "chat"]]] = [
        ("embedded", "tokens"),
        ("embedded", "chat"),
        ("openai", "tokens"),
        ("openai", "chat"),
    ]
    for kind, mode in ways:
        async with (
            gateway(process, directories[0], tmp_path / kind / mode, mode, kind) as stand,
            serve(stand) as server,
            aiohttp.ClientSession() as client,
        ):
            session = await stand.open()
            await ask(client, server.url, session, history)
            contexts.append(session.forest.context(0).tolist())
    assert all(context == contexts[0] for context in contexts)


@pytest.mark.parametrize(("kind", "flags"), [("embedded", set()), ("vllm", {Flag.TEMPERATURE})])
async def test_its_logprobs_are_of_the_temperature_that_it_sampled_at(
    process: EngineProcess,
    policies: list[Qwen3ForCausalLM],
    directories: list[Path],
    tmp_path: Path,
    kind: EngineKind,
    flags: set[Flag],
) -> None:
    """So such turns are trained on, unless the engine is taken for one that reports them as if at 1."""
    async with (
        gateway(process, directories[0], tmp_path / "j", "tokens", kind, temperature=0.5) as stand,
        serve(stand) as server,
        aiohttp.ClientSession() as client,
    ):
        session = await stand.open()
        await ask(client, server.url, session, [user("Say something.")])
        (turn,) = session.forest.turns
    assert turn.flags == flags
    tokens = torch.from_numpy(session.forest.tokens(0).astype(np.int64))
    with torch.no_grad():
        logits = policies[0](tokens[None]).logits[0].float()[turn.context_length - 1 : -1]
    drawn = torch.log_softmax(logits / 0.5, -1).gather(1, tokens[turn.context_length :, None])
    assert np.abs(drawn[:, 0].numpy() - turn.logprobs).max() < 1e-4
