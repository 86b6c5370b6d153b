# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""NeMo RL's policy server: what it refuses, and which tokens it may be told to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.chat import Conversation, Message, Sampling, Text
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.engines.nemo_rl import NeMoRL
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.forest.turn import Cause, Edge
from tests.support.fake_engine import bash
from tests.support.fake_nemo_rl import FakeNeMoRL
from tests.support.gateways import Bench, bench, chat, result, user

HELLO = Conversation((Message("user", (Text("Hello."),)),))
PLAIN = Sampling(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=16)
# Sampled with blanks that no template would render again.
UNUSUAL = "<tool_call>\n<function=bash>\n<parameter=command>\n\n  ls  \n</parameter>\n</function>\n</tool_call>"


@pytest.fixture
async def trainer(model_directory: Path) -> AsyncIterator[FakeNeMoRL]:
    async with FakeNeMoRL(model_directory) as trainer:
        yield trainer


@pytest.fixture
async def client(trainer: FakeNeMoRL) -> AsyncIterator[NeMoRL]:
    client = NeMoRL(Replicas([trainer.url + "/v1"]), model="tiny")
    yield client
    await client.close()


@pytest.fixture
async def stand(trainer: FakeNeMoRL, tmp_path: Path) -> AsyncIterator[Bench]:
    fields = {"kind": "nemo_rl"}
    async with bench(trainer, tmp_path / "journals", mode="chat", engine_fields=fields) as stand:
        yield stand


def kept(stand: Bench) -> list[list[int] | None]:
    """The tokens that the server was told to keep, call by call."""
    return [served.parameters.get("required_prefix_token_ids") for served in stand.engine.served]


async def test_it_answers_and_counts(trainer: FakeNeMoRL, client: NeMoRL) -> None:
    await client.check()
    rendered = await client.chat(HELLO, PLAIN, session="s")
    (served,) = trainer.served
    assert rendered.prompt_ids.tolist() == served.context
    assert rendered.sampled.token_ids.tolist() == served.sampled
    assert await client.count(HELLO, session="s") == len(served.context)


async def test_other_sampling_values_than_the_trainer_s_are_named(trainer: FakeNeMoRL, client: NeMoRL) -> None:
    trainer.temperature = 0.7
    with pytest.raises(EngineError, match=r"the gateway sent temperature=1\.0 and top_p=1\.0") as caught:
        await client.chat(HELLO, PLAIN, session="s")
    assert caught.value.status == 502
    same = Sampling(temperature=0.7, top_p=1.0, max_tokens=16)
    assert len((await client.chat(HELLO, same, session="s")).sampled.token_ids)


async def test_top_k_is_refused_before_it_is_asked(trainer: FakeNeMoRL, client: NeMoRL) -> None:
    with pytest.raises(EngineError, match=r"sampling\.top_k=20.*set it to -1") as caught:
        await client.chat(HELLO, Sampling(temperature=1.0, top_p=1.0, top_k=20), session="s")
    assert (caught.value.fault, caught.value.status, trainer.served) == ("unsupported", 400, [])


async def test_its_own_words_for_a_context_that_is_too_long(trainer: FakeNeMoRL, client: NeMoRL) -> None:
    trainer.max_model_len = 4
    with pytest.raises(ContextOverflowError, match="fills or exceeds max_model_len"):
        await client.chat(HELLO, PLAIN, session="s")


async def test_a_wrong_model_name_is_found_at_the_start(trainer: FakeNeMoRL) -> None:
    client = NeMoRL(Replicas([trainer.url]), model="other")
    with pytest.raises(EngineError, match=r"does not exist.*engine\.model"):
        await client.check()
    await client.close()


async def test_a_dead_server_is_found_at_the_start() -> None:
    client = NeMoRL(Replicas(["http://127.0.0.1:9"]), model="tiny")
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9"):
        await client.check()
    await client.close()


async def test_an_append_keeps_the_sampled_tokens(stand: Bench) -> None:
    stand.engine.script = lambda text: "Done." if "<tool_response>" in text else UNUSUAL
    session = await stand.gateway.open()
    first = await stand.post(session, chat(user("Look.")))
    answer = result(first.message["tool_calls"][0]["id"], "a b")
    await stand.post(session, chat(user("Look."), first.message, answer))
    known = stand.engine.served[0]
    assert kept(stand) == [None, known.context + known.sampled]
    assert session.forest[1].edge is Edge.CONTINUE
    assert session.forest[1].shared == len(known.context + known.sampled)


async def test_a_question_asked_again_keeps_what_it_kept(stand: Bench) -> None:
    stand.engine.script = lambda text: "Done." if "<tool_response>" in text else UNUSUAL
    session = await stand.gateway.open()
    first = await stand.post(session, chat(user("Look.")))
    again = chat(user("Look."), first.message, result(first.message["tool_calls"][0]["id"], "a b"))
    for _ in range(3):
        await stand.post(session, again)
    assert kept(stand)[1] == kept(stand)[2] == kept(stand)[3] is not None
    assert [turn.edge for turn in session.forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.RETRY, Edge.RETRY]
    assert [len(turn.delta) for turn in session.forest.turns[2:]] == [0, 0]


async def test_a_first_question_asked_again_keeps_nothing(stand: Bench) -> None:
    session = await stand.gateway.open()
    for _ in range(2):
        await stand.post(session, chat(user("Look.")))
    assert kept(stand) == [None, None]


async def test_a_rewritten_history_keeps_nothing(stand: Bench) -> None:
    """The server would put the old context in the place of the new history, and never say so."""
    stand.engine.script = lambda _: "I see."
    session = await stand.gateway.open()
    first = await stand.post(session, chat(user("Look at all of it."), tools=[]))
    rewritten = chat(user("In short: look."), first.message, user("And now?"), tools=[])
    await stand.post(session, rewritten)
    assert kept(stand) == [None, None]
    turn = session.forest[1]
    assert (turn.edge, turn.cause) == (Edge.ROOT, Cause.HISTORY_REWRITTEN)
    assert session.forest.context(1).tolist() == stand.engine.served[1].context


async def test_an_answer_that_somebody_else_gave_keeps_nothing(stand: Bench) -> None:
    """The server would keep the known tokens up to that answer, and so lose it."""
    stand.engine.script = lambda _: "I see."
    session = await stand.gateway.open()
    first = await stand.post(session, chat(user("Look."), tools=[]))
    foreign = {"role": "assistant", "content": "Somebody else's words."}
    await stand.post(session, chat(user("Look."), first.message, user("Go on."), foreign, user("And?"), tools=[]))
    assert kept(stand) == [None, None]
    assert "Somebody else" in stand.engine.decoded(stand.engine.served[1].context)
    assert session.forest.context(1).tolist() == stand.engine.served[1].context


async def test_another_agent_s_question_keeps_nothing(stand: Bench) -> None:
    stand.engine.script = lambda _: bash("ls")
    session = await stand.gateway.open()
    await stand.post(session, chat({"role": "system", "content": "Main."}, user("Look.")))
    await stand.post(session, chat({"role": "system", "content": "Another."}, user("Search.")))
    assert kept(stand) == [None, None]
