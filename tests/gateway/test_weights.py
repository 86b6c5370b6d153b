# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Weights that are replaced while sessions run: no generation begins in between, and every token names its own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from nemo_gym_polar.forest.audit import audit
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Flag, Turn
from nemo_gym_polar.gateway.weights import NotDrainedError
from nemo_gym_polar.tokens import VersionSpan
from tests.support.dialect_calls import Ask, asks
from tests.support.fake_engine import FakeEngine
from tests.support.fake_sglang import FakeSGLang
from tests.support.gateways import Bench, bench, chat, user
from tests.support.waiting import until


async def test_a_pause_waits_for_what_is_in_flight_and_holds_the_rest(stand: Bench) -> None:
    stand.engine.delay = 0.2
    session = await stand.gateway.open()
    first = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    await stand.gateway.pause(5)
    assert len(stand.engine.served) == 1
    assert stand.gateway.weights.paused
    second = asyncio.create_task(stand.post(session, chat(user("ho"))))
    await until(lambda: stand.gateway.calls.number == 1)
    await asyncio.sleep(0.3)
    assert (len(stand.engine.served), stand.engine.running) == (1, 0)
    stand.gateway.resume("7")
    assert (await first).status == (await second).status == 200
    assert stand.gateway.policy_version == "7"
    assert not stand.gateway.weights.paused


async def test_a_pause_that_takes_too_long_is_given_up(stand: Bench) -> None:
    stand.engine.delay = 0.5
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    with pytest.raises(NotDrainedError, match=r"1 generations are still in flight after 0\.05 s"):
        await stand.gateway.pause(0.05)
    assert not stand.gateway.weights.paused
    assert (await call).status == (await stand.post(session, chat(user("ho")))).status == 200


async def test_an_idle_gateway_pauses_at_once_and_twice(stand: Bench) -> None:
    await stand.gateway.pause(0.01)
    await stand.gateway.pause(0.01)
    stand.gateway.resume()
    assert not stand.gateway.weights.paused
    assert stand.gateway.policy_version is None


async def test_a_resume_in_the_middle_of_a_pause_ends_it(stand: Bench) -> None:
    stand.engine.delay = 0.3
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    pausing = asyncio.create_task(stand.gateway.pause(5))
    await until(lambda: stand.gateway.weights.paused)
    stand.gateway.resume()
    with pytest.raises(NotDrainedError, match="was resumed while it waited"):
        await pausing
    assert (await call).status == 200


@pytest.mark.parametrize("ask", asks(), ids=lambda ask: f"{ask.dialect}-{'stream' if ask.stream else 'whole'}")
async def test_calls_may_be_told_to_come_again(engine: FakeEngine, tmp_path: Path, ask: Ask) -> None:
    async with bench(engine, tmp_path / "j", while_paused="refuse", retry_after=2) as stand:
        session = await stand.gateway.open(max_turns=1)
        await stand.gateway.pause(1)
        refused = await stand.post(session, ask.body, path=ask.path)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
        stand.gateway.resume()
        # It took no turn.
        assert (await stand.post(session, ask.body, path=ask.path)).status == 200


async def test_who_waits_for_weights_can_leave_and_run_out_of_time(stand: Bench) -> None:
    await stand.gateway.pause(1)
    session = await stand.gateway.open(deadline=time.monotonic() + 0.2)
    assert (await stand.post(session, chat(user("hi")))).error["code"] == "session_budget_exhausted"
    other = await stand.gateway.open()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await stand.post(other, chat(user("hi")))
    await until(lambda: stand.gateway.calls.number == 0)
    assert stand.engine.served == []


async def test_finish_does_not_wait_for_weights(stand: Bench) -> None:
    await stand.gateway.pause(1)
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.gateway.calls.number == 1)
    await asyncio.wait_for(stand.gateway.finish(session.id), 5)
    assert (await call).status == 401


# Versions


async def test_the_engine_s_word_counts(stand: Bench) -> None:
    """An update in flight: it names the weights of each token, whatever was announced."""
    session = await stand.gateway.open()
    stand.gateway.resume("5")
    stand.engine.faults.append("two_versions")
    await stand.post(session, chat(user("hi")))
    (turn,) = session.forest.turns
    assert turn.versions == (VersionSpan("old", 0, 1), VersionSpan("new", 1, len(turn.sampled)))
    assert turn.flags == frozenset()
    (trace,) = build(session.forest).traces
    assert [(span.version, span.end - span.start) for span in trace.versions] == [("old", 1), ("new", 2)]
    assert (stand.gateway.policy_version, stand.gateway.weights.reported) == ("5", "new")
    await stand.post(session, chat(user("ho")))
    assert session.forest[1].versions == (VersionSpan("0", 0, 3),)


async def test_what_was_announced_where_the_engine_is_silent(engine: FakeEngine, tmp_path: Path) -> None:
    engine.generate = False
    async with bench(engine, tmp_path / "j") as stand:
        session = await stand.gateway.open()
        await stand.post(session, chat(user("nobody said")))
        await stand.gateway.pause(1)
        stand.gateway.resume("1")
        await stand.post(session, chat(user("said")))
        assert [turn.versions for turn in session.forest.turns] == [(), (VersionSpan("1", 0, 3),)]
        assert [turn.flags for turn in session.forest.turns] == 2 * [frozenset()]


async def test_an_update_in_flight_that_the_engine_does_not_tell_of_is_in_doubt(
    engine: FakeEngine, tmp_path: Path
) -> None:
    """Nobody knows where in the answer the weights changed, so nothing of it is trained on; it is counted."""
    engine.generate, engine.delay = False, 0.2
    async with bench(engine, tmp_path / "j") as stand:
        stand.gateway.resume("1")
        session = await stand.gateway.open()
        call = asyncio.create_task(stand.post(session, chat(user("hi"))))
        await until(lambda: engine.running == 1)
        stand.gateway.resume("2")
        assert (await call).status == 200
        await stand.post(session, chat(user("ho")))
        forest = await stand.gateway.finish(session.id)
    doubtful, sure = forest.turns
    assert (doubtful.flags, doubtful.versions) == (frozenset({Flag.WEIGHTS_CHANGED}), (VersionSpan("1", 0, 3),))
    assert (sure.flags, sure.versions) == (frozenset(), (VersionSpan("2", 0, 3),))
    built = build(forest)
    assert dict(built.dropped) == {"weights_changed": 3}
    assert built.trained_tokens == 3
    assert audit(forest, built.traces, built.dropped) == []


async def test_an_engine_that_names_one_version_for_an_answer(model_directory: Path, tmp_path: Path) -> None:
    """Believed, unless the weights may have changed in the middle."""
    async with (
        FakeSGLang(model_directory) as engine,
        bench(engine, tmp_path / "j", engine_fields={"kind": "sglang"}) as stand,
    ):
        session = await stand.gateway.open()

        async def ask(text: str) -> Turn:
            assert (await stand.post(session, chat(user(text)))).status == 200
            return session.forest.turns[-1]

        engine.version = "1"
        assert (await ask("nothing is known before")).flags == frozenset()
        engine.version = "2"
        unannounced = await ask("other weights than before")
        assert unannounced.versions == (VersionSpan("2", 0, 3),)
        assert unannounced.flags == {Flag.WEIGHTS_CHANGED}
        assert (await ask("the same again")).flags == frozenset()
        engine.version = "3"
        stand.gateway.resume("3")
        assert (await ask("announced")).flags == frozenset()
        engine.delay = 0.2
        crossing = asyncio.create_task(ask("crossing"))
        await until(lambda: engine.running == 1)
        engine.version = "4"
        stand.gateway.resume("4")
        assert (await crossing).flags == {Flag.WEIGHTS_CHANGED}


async def test_an_engine_that_goes_by_other_names_is_still_trained_on(model_directory: Path, tmp_path: Path) -> None:
    """As one whose version nobody sets."""
    async with (
        FakeSGLang(model_directory, version="default") as engine,
        bench(engine, tmp_path / "j", engine_fields={"kind": "sglang"}) as stand,
    ):
        session = await stand.gateway.open()
        for number in range(3):
            stand.gateway.resume(str(number))
            await stand.post(session, chat(user(str(number))))
        assert [turn.flags for turn in session.forest.turns] == 3 * [frozenset()]
