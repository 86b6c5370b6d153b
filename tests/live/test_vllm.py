# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real vLLM, on a CPU, and the embedded policy's server by the same measures: one contract, two servers.

Both serve the warm-started policy. One file, so that one process starts one vLLM.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aiohttp
import numpy as np
import psutil
import pytest
import torch

from nemo_gym_polar.chat import Conversation, Message, Sampling, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.cli.logprob_audit import compare
from nemo_gym_polar.engines import openai_wire, replies, vllm_replies
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.turn import Edge, Flag
from nemo_gym_polar.policy.model import load_policy, save_policy
from nemo_gym_polar.policy.refit import RefitError, load_weights
from nemo_gym_polar.policy.tokenizer import load_tokenizer
from nemo_gym_polar.policy.warm_start import WarmStartSettings, ensure_policy
from nemo_gym_polar.tokens import Int32
from tests.support.commands import run_command
from tests.support.gateways import Bench, bench
from tests.support.served_policy import serving
from tests.support.talks import DIALECTS, OUTPUT, PARAMETERS, Chat, Talk
from tests.support.vllm_server import NAME, vllm_server

pytestmark = pytest.mark.timeout(600)  # a busy machine takes minutes to start the server

TOLERANCE = 1e-3  # nats; float32 on both sides, read whole or token by token
REACH = 200  # more tokens than the policy looks back
WISH = "Create an empty file named notes.txt."
Mode = Literal["tokens", "chat", "render"]


@dataclass(frozen=True)
class Served:
    """An engine and the model directory that it serves."""

    kind: str
    url: str
    tokenizer_directory: Path
    pid: int | None = None


@pytest.fixture(scope="module")
def policy() -> Path:
    return ensure_policy(WarmStartSettings())


@pytest.fixture(scope="module")
def other(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other weights for the same policy."""
    model = load_policy(policy)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() / 20)
    directory = tmp_path_factory.mktemp("other")
    save_policy(model, load_tokenizer(policy), directory)
    return directory


@pytest.fixture(scope="module")
def embedded(policy: Path) -> Iterator[Served]:
    with serving(policy, "--served-model-name", NAME, "--max-model-len", "16384") as (url, _):
        yield Served("embedded", url, policy)


@pytest.fixture(scope="module")
def vllm(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with vllm_server(policy, tmp_path_factory.mktemp("vllm") / "server.log") as (url, pid):
        yield Served("vllm", url, policy, pid)


@pytest.fixture(params=["embedded", "vllm"])
def served(request: pytest.FixtureRequest) -> Served:
    server: Served = request.getfixturevalue(request.param)
    return server


@pytest.fixture
async def engine(served: Served) -> AsyncIterator[VLLM]:
    engine = VLLM(Replicas([served.url]), model=NAME)
    yield engine
    await engine.close()


@pytest.fixture
def rendering(policy: Path) -> Rendering:
    return Rendering.load(policy, "qwen3.5", {"enable_thinking": False})


async def post(url: str, body: dict[str, Any]) -> Any:
    data, headers = openai_wire.encode({"model": NAME, **body}), {"content-type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as client, client.post(url, data=data) as reply:
        assert reply.status == 200, await reply.text()
        return await reply.json()


def prompt(rendering: Rendering) -> Int32:
    return rendering.render(Conversation((Message("user", (Text(WISH),)),)))


# One answer


async def test_what_is_said_to_be_sampled_is_as_likely_as_said(engine: VLLM, rendering: Rendering) -> None:
    context = prompt(rendering)
    sampled = await engine.sample(context, Sampling(temperature=1.0, max_tokens=60), session="s")
    version = await engine.weight_version()
    assert [(span.version, span.start, span.end) for span in sampled.versions] == [(version, 0, len(sampled.token_ids))]
    scores = await engine.score(np.concatenate((context, sampled.token_ids)))
    assert np.abs(scores[len(context) :] - sampled.logprobs).max() < TOLERANCE


async def test_how_full_it_is(engine: VLLM, served: Served) -> None:
    """The embedded engine does not say."""
    told = await engine.pressure()
    assert told is None if served.kind == "embedded" else told is not None and 0 <= told <= 1


async def test_both_ways_of_asking_by_ids_answer_alike(served: Served, rendering: Rendering) -> None:
    context = prompt(rendering)
    asked = {"max_tokens": 30, "temperature": 0.0, "logprobs": 0}
    one = await post(f"{served.url}/inference/v1/generate", {"token_ids": context, "sampling_params": asked})
    two = await post(f"{served.url}/v1/completions", {"prompt": context, "return_token_ids": True, **asked})
    source = Source("vllm", "/x", "")
    generated = vllm_replies.generated(replies.first_choice(one, source), source)
    completed = vllm_replies.completed(replies.first_choice(two, source), source)
    assert generated.token_ids.tolist() == completed.token_ids.tolist()
    assert np.abs(generated.logprobs - completed.logprobs).max() < TOLERANCE
    assert (len(generated.versions), completed.versions) == (1, ())


async def test_what_cannot_be_done_is_said(engine: VLLM, served: Served) -> None:
    sampling = Sampling(temperature=1.0, max_tokens=5)
    with pytest.raises(ContextOverflowError):
        await engine.sample(np.full(20_000, 50, np.int32), sampling, session="s")
    with pytest.raises(EngineError, match="99999") as caught:
        await engine.sample(np.array([50, 99_999], np.int32), sampling, session="s")
    assert caught.value.status == 400
    stranger = VLLM(Replicas([served.url]), model="stranger")
    with pytest.raises(EngineError, match=r"engine\.model"):
        await stranger.sample(np.array([50], np.int32), sampling, session="s")
    await stranger.close()


def histories() -> list[Conversation]:
    tools = (Tool("bash", "Run a command", PARAMETERS),)
    system, user = Message("system", (Text("You are terse."),)), Message("user", (Text("Make a.txt,\n\n now!"),))
    call = Message("assistant", (Text("Yes."), ToolCall("c", "bash", json.dumps({"command": "touch  a.txt"}))))
    result, said = Message("user", (ToolResult("c", (Text(OUTPUT),)),)), Message("assistant", (Text("Done."),))
    long = (system, user, call, result, said, user)
    return [Conversation(long[:length], tools) for length in (2, 4, 6)] + [Conversation(long[1:2])]


@pytest.mark.parametrize("number", range(4))
async def test_the_server_renders_as_we_do(served: Served, rendering: Rendering, number: int) -> None:
    conversation = histories()[number]
    ours = rendering.render(conversation).tolist()
    asked = openai_wire.asked(conversation)
    assert (await post(f"{served.url}/tokenize", asked))["tokens"] == ours
    if served.kind == "vllm":
        assert (await post(f"{served.url}/v1/chat/completions/render", asked))["token_ids"] == ours


# Sessions


@asynccontextmanager
async def standing(served: Served, journals: Path, mode: Mode, *more_urls: str) -> AsyncIterator[Bench]:
    fields = {"kind": served.kind}
    async with bench(served, journals, mode=mode, more_urls=more_urls, engine_fields=fields) as stand:  # type: ignore[arg-type]  # of an engine only the address and the directory are used
        yield stand


async def turn(stand: Bench, session: Any, talk: Talk) -> None:
    reply = await stand.post(session, talk.body(), path=talk.path)
    assert reply.status == 200, reply.body
    talk.take(reply.json)


async def session_of(stand: Bench, talk: Talk, turns: int = 3) -> Forest:
    session = await stand.gateway.open()
    talk.ask(WISH)
    for _ in range(turns):
        await turn(stand, session, talk)
    return await stand.gateway.finish(session.id)


def check(forest: Forest, mode: Mode) -> None:
    """Every turn goes on from all tokens of the one before, or says why not."""
    for number, kept in enumerate(forest.turns):
        assert len(kept.sampled) == len(kept.logprobs) > 0
        assert np.isfinite(kept.logprobs).all() and not kept.flags
        if kept.edge is Edge.CONTINUE:
            before = forest.tokens(number - 1)
            assert forest.context(number)[: len(before)].tolist() == before.tolist()
        else:
            assert number == 0 or (mode == "chat" and kept.cause is not None), kept
        if mode != "chat":
            assert [(span.start, span.end) for span in kept.versions] == [(0, len(kept.sampled))]


WAYS = [("embedded", "tokens"), ("embedded", "chat"), ("vllm", "tokens"), ("vllm", "chat"), ("vllm", "render")]


@pytest.mark.parametrize(("name", "mode"), WAYS)
async def test_every_dialect_with_tools(name: str, mode: Mode, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Then the journals are audited, and the engine is asked whether their tokens are as likely as they say."""
    served: Served = request.getfixturevalue(name)
    called = []
    async with standing(served, tmp_path / "journals", mode) as stand:
        for dialect in DIALECTS:
            talk = dialect()
            forest = await session_of(stand, talk)
            check(forest, mode)
            called += talk.calls
    assert called, "the policy calls a tool in nearly every first answer"
    asked = ["--engine", served.url, "--engine-kind", name, "--model", NAME, "--tolerance", str(TOLERANCE), "--json"]
    if mode == "chat":  # no version is told there
        asked.append("--any-version")
    ended = await asyncio.to_thread(run_command, tmp_path, "polar", "audit", "journals", *asked)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    for report in json.loads(ended.stdout):
        assert report["sound"] and report["logprobs"]["left_out"] == {}
        assert sum(row["tokens"] for row in report["logprobs"]["edges"]) == report["trained_tokens"] > 0


@pytest.mark.parametrize("mode", ["tokens", "chat", "render"])
async def test_answers_as_a_stream(vllm: Served, mode: Mode, tmp_path: Path) -> None:
    async with standing(vllm, tmp_path / "journals", mode) as stand:
        session = await stand.gateway.open()
        talk = Chat()
        talk.ask(WISH)
        reply = await stand.post(session, talk.body(stream=True), path=talk.path)
        events = [line[6:] for line in reply.body.splitlines() if line.startswith(b"data: ")]
        assert events[-1] == b"[DONE]"
        ends = [choice["finish_reason"] for event in events[:-1] for choice in json.loads(event)["choices"]]
        assert ends[-1] in ("stop", "tool_calls", "length")
        check(await stand.gateway.finish(session.id), mode)


@pytest.mark.parametrize("mode", ["tokens", "render"])
async def test_an_answer_that_was_cut_off_goes_on(vllm: Served, mode: Mode, tmp_path: Path) -> None:
    async with standing(vllm, tmp_path / "journals", mode) as stand:
        await session_of(stand, Chat())  # whatever ends an answer has been seen by now
        talk = Chat(limit=3)
        forest = await session_of(stand, talk, turns=2)
        assert [kept.finish_reason for kept in forest.turns] == ["length", "length"]
        check(forest, mode)


@pytest.mark.parametrize("mode", ["tokens", "chat", "render"])
async def test_structured_output_is_never_trained_on(vllm: Served, mode: Mode, tmp_path: Path) -> None:
    """Where the server masks tokens by a grammar, what it reports is not the policy's."""
    schema = {"type": "object", "properties": {"a": {"const": "b"}}, "required": ["a"], "additionalProperties": False}
    wish = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, "tools": []}
    async with standing(vllm, tmp_path / "journals", mode) as stand:
        session = await stand.gateway.open()
        talk = Chat()
        talk.ask(WISH)
        reply = await stand.post(session, talk.body(**wish), path=talk.path)
        assert reply.status == 200, reply.body
        forest = await stand.gateway.finish(session.id)
    constrained = mode != "tokens"
    assert forest[0].flags == ({Flag.CONSTRAINED} if constrained else frozenset())
    assert (reply.message["content"] or "").lstrip().startswith("{") == constrained
    assert (build(forest).trained_tokens == 0) == constrained


# New weights


async def test_a_session_goes_on_under_new_weights(
    served: Served, engine: VLLM, policy: Path, other: Path, tmp_path: Path
) -> None:
    """Its journal tells which weights sampled what, and the engine agrees about those that it has."""
    async with standing(served, tmp_path / "journals", "tokens") as stand:
        session = await stand.gateway.open()
        talk = Chat()
        talk.ask(WISH)
        try:
            for directory, version in ((policy, "step-1"), (other, "step-2")):
                await load_weights(served.url, directory, version)
                await turn(stand, session, talk)
            forest = await stand.gateway.finish(session.id)
            journal = read_journal(tmp_path / "journals" / f"{session.id}.journal")
            found, before = [await compare(engine, journal, any_version=any_version) for any_version in (False, True)]
        finally:
            await load_weights(served.url, policy, "again")
    check(forest, "tokens")
    assert [kept.versions[0].version for kept in forest.turns] == ["step-1", "step-2"]
    assert forest[1].edge is Edge.CONTINUE
    assert found.left_out == {"other_weights": len(forest[0].sampled)}
    assert max(spread.max for spread in found.spreads()) < TOLERANCE
    assert max(spread.max for spread in before.spreads()) > 10 * TOLERANCE


async def sampled_tokens(url: str) -> float:
    """How many tokens the server has sampled since it started."""
    async with aiohttp.ClientSession() as client, client.get(f"{url}/metrics") as reply:
        lines = (await reply.text()).splitlines()
    counters = ("polar_engine_sampled_tokens_total", "vllm:generation_tokens_total")
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(counters))


async def test_an_answer_goes_on_over_new_weights(
    served: Served, engine: VLLM, policy: Path, other: Path, rendering: Rendering
) -> None:
    """Its spans say where the weights changed: what came before is the old ones', the rest the new ones'."""
    context, length = prompt(rendering), 800
    asked = {"max_tokens": length, "temperature": 1.0, "logprobs": 0, "ignore_eos": True}
    await load_weights(served.url, policy, "old")
    begun = await sampled_tokens(served.url)
    answer = asyncio.create_task(
        post(f"{served.url}/inference/v1/generate", {"token_ids": context, "sampling_params": asked})
    )
    try:
        async with asyncio.timeout(60):
            while await sampled_tokens(served.url) < begun + 20:  # noqa: ASYNC110  # only the server knows
                await asyncio.sleep(0.02)
        await load_weights(served.url, other, "new", in_flight="keep")
        source = Source("vllm", "/x", "")
        sampled = vllm_replies.generated(replies.first_choice(await answer, source), source)
        whole = np.concatenate((context, sampled.token_ids))
        after = np.abs((await engine.score(whole))[len(context) :] - sampled.logprobs)
    finally:
        await load_weights(served.url, policy, "again")
    before = np.abs((await engine.score(whole))[len(context) :] - sampled.logprobs)
    old, new = sampled.versions
    assert (old.version, new.version, new.end) == ("old", "new", length)
    assert before[: old.end].max() < TOLERANCE < before[new.start :].max()
    assert after[new.start + REACH :].max() < TOLERANCE < after[: old.end].max()


async def test_weights_that_are_not_there_are_refused(
    served: Served, engine: VLLM, policy: Path, tmp_path: Path
) -> None:
    """A refusal leaves vLLM without weights, and the next answer would end it; but it is not left paused, and good
    weights mend it."""
    with pytest.raises(RefitError, match=r"collective_rpc with [45]00"):
        await load_weights(served.url, tmp_path / "nothing", "lost")
    async with aiohttp.ClientSession(served.url) as client, client.get("/is_paused") as reply:
        assert await reply.json() == {"is_paused": False}
    assert await engine.weight_version() != "lost"
    await load_weights(served.url, policy, "found")
    sampled = await engine.sample(np.array([50, 51], np.int32), Sampling(temperature=1.0, max_tokens=3), session="s")
    assert sampled.versions[0].version == "found"


# The end


async def test_a_server_that_dies_in_the_middle(vllm: Served, embedded: Served, tmp_path: Path) -> None:
    """The last test: it kills the server. One session has another engine to go to, one has not."""
    assert vllm.pid is not None
    async with (
        standing(vllm, tmp_path / "a", "tokens", embedded.url) as both,
        standing(vllm, tmp_path / "b", "tokens") as alone,
    ):
        talks = [(stand, await stand.gateway.open(), Chat()) for stand in (both, alone)]
        for stand, session, talk in talks:
            talk.ask(WISH)
            await turn(stand, session, talk)
        family = psutil.Process(vllm.pid).children(recursive=True)
        worker = family[-1]
        worker.suspend()
        calls = [asyncio.create_task(stand.post(session, talk.body())) for stand, session, talk in talks]
        await asyncio.sleep(1.0)
        assert not any(call.done() for call in calls)
        for process in family:
            process.kill()
        moved, failed = await asyncio.gather(*calls)
        assert (moved.status, failed.status) == (200, 503), (moved.body, failed.body)
        assert "No engine answered" in failed.error["message"]
        talks[0][2].take(moved.json)
        await turn(*talks[0])
        check(await both.gateway.finish(talks[0][1].id), "tokens")
        assert build(await alone.gateway.finish(talks[1][1].id)).trained_tokens > 0
