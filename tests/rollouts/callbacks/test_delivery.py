# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks: at least once, signed, again while nobody listens, also by a service that was started anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from nemo_gym_polar.rollouts.callbacks.delivery import Delivery, contents_of
from nemo_gym_polar.rollouts.callbacks.settings import CallbackSettings
from nemo_gym_polar.rollouts.callbacks.signature import HEADER, sign, verify
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.callback_target import CallbackTarget
from tests.support.control_api import Desk, desk, task

KEY = "a signing key"
QUICK: dict[str, Any] = {"first_delay": 0.05, "longest_delay": 0.2, "timeout": 2.0, "key": SecretStr(KEY)}


@contextlib.asynccontextmanager
async def telling(directory: Path, **fields: Any) -> AsyncIterator[Desk]:
    settings = CallbackSettings(**{**QUICK, **fields})
    async with desk(directory) as at, Delivery(at.control, settings, contents_of(at.control, traces=True)):
        yield at


async def run(at: Desk, url: str, task_id: str = "one", samples: int = 1, *, end: bool = True) -> None:
    code, said = await at.call(
        "POST", "/rollout/task/submit", json=task(task_id, callback_url=url, num_samples=samples)
    )
    assert code == 200, said
    async with asyncio.timeout(10):
        while True:
            if sum(work.request.task_id == task_id for work in at.node.started) == samples:
                break
            await asyncio.sleep(0.01)
    for work in [*at.node.running.values()] if end else ():
        at.node.end(work.session_id, SessionStatus.COMPLETED, reward=0.5)


async def states(at: Desk, task_id: str = "one") -> list[tuple[str, int]]:
    _, found = await at.call("GET", f"/tasks/{task_id}/callbacks")
    return [(one["state"], one["attempts"]) for one in found["callbacks"]]


async def becomes(at: Desk, expected: list[tuple[str, int]]) -> None:
    async with asyncio.timeout(15):
        while True:
            if await states(at) == expected:
                return
            await asyncio.sleep(0.05)


async def test_every_result_and_the_tasks_end_are_told(tmp_path: Path) -> None:
    async with CallbackTarget() as target, telling(tmp_path) as at:
        await run(at, target.url, samples=2)
        calls = await target.heard(3)
        assert sorted(call.kind for call in calls) == ["session.result", "session.result", "task.end"]
        results = [call.json for call in calls if call.kind == "session.result"]
        assert {one["session_id"] for one in results} == {work.session_id for work in at.node.started}
        assert {(one["status"], one["reward"], one["trajectory"]["status"]) for one in results} == {
            ("COMPLETED", 0.5, "COMPLETED")
        }
        (end,) = (call.json for call in calls if call.kind == "task.end")
        assert (end["status"], end["completed_sessions"], len(end["results"])) == ("completed", 2, 2)
        assert all(verify(KEY.encode(), call.body, call.headers[HEADER]) for call in calls)
        assert len({call.headers["X-Polar-Delivery"] for call in calls}) == 3
        await becomes(at, [("delivered", 1)] * 3)


async def test_one_that_fails_is_tried_again(tmp_path: Path) -> None:
    async with CallbackTarget(lambda number: 500 if number < 3 else 200) as target, telling(tmp_path) as at:
        await run(at, target.url)
        calls = await target.heard(5)
        assert len({call.headers["X-Polar-Delivery"] for call in calls}) == 2
        assert {call.headers["X-Polar-Attempt"] for call in calls} >= {"1", "2"}
        async with asyncio.timeout(10):
            while True:
                if {state for state, _ in await states(at)} == {"delivered"}:
                    break
                await asyncio.sleep(0.05)


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    async with CallbackTarget(lambda _: 307) as target, telling(tmp_path) as at:
        await run(at, target.url)
        await target.heard(3)
        assert target.elsewhere == 0
        _, found = await at.call("GET", "/tasks/one/callbacks")
        assert {(one["state"], one["error"]) for one in found["callbacks"]} <= {
            ("pending", "answered 307"),
            ("pending", None),
        }


async def test_one_that_nobody_hears_is_given_up_and_seen(tmp_path: Path) -> None:
    async with telling(tmp_path, give_up_after=0.3) as at:
        await run(at, "http://127.0.0.1:9/results")
        async with asyncio.timeout(10):
            while True:
                _, found = await at.call("GET", "/tasks/one/callbacks")
                if [one["state"] for one in found["callbacks"]] == ["given_up", "given_up"]:
                    break
                await asyncio.sleep(0.05)
        assert all("127.0.0.1:9" in one["error"] and one["attempts"] > 1 for one in found["callbacks"])
        assert (await at.call("GET", "/rollout/task/one"))[1]["status"] == "completed"  # polling is the net


async def test_a_service_that_starts_again_goes_on(tmp_path: Path) -> None:
    async with CallbackTarget(lambda _: 503) as target:
        async with telling(tmp_path, longest_delay=3600.0, first_delay=0.5) as at:
            await run(at, target.url)
            await target.heard(2)
        target.answer = lambda _: 200
        told = len(target.calls)
        async with telling(tmp_path) as at:
            await target.heard(told + 2)
            await becomes(at, [("delivered", 2)] * 2)
            await asyncio.sleep(0.5)
            assert len(target.calls) == told + 2  # and nothing again that was heard
        assert len({call.headers["X-Polar-Delivery"] for call in target.calls}) == 2


async def test_results_that_came_while_nobody_delivered_are_told_later(tmp_path: Path) -> None:
    async with CallbackTarget() as target:
        async with desk(tmp_path) as at:
            await run(at, target.url)
            async with asyncio.timeout(10):
                while True:
                    if (await at.call("GET", "/rollout/task/one"))[1]["status"] == "completed":
                        break
                    await asyncio.sleep(0.05)
        assert not target.calls
        async with telling(tmp_path):
            assert [call.kind for call in await target.heard(2)] == ["session.result", "task.end"]


async def test_a_slow_target_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with CallbackTarget() as target, telling(tmp_path, timeout=20.0) as at:
        await run(at, f"http://127.0.0.1:{port}/", "slow")
        await run(at, target.url)
        await target.heard(2)
        assert {state for state, _ in await states(at, "slow")} == {"pending"}
        release.set()
    server.close()


def test_a_signature_is_of_one_body_one_key_and_one_time() -> None:
    signed = sign(b"key", b"body", 1000)
    assert verify(b"key", b"body", signed, now=1100)
    assert not verify(b"key", b"body", signed, now=2000)
    assert not verify(b"key", b"other", signed, now=1000)
    assert not verify(b"other", b"body", signed, now=1000)
    assert not verify(b"key", b"body", signed.replace("t=1000", "t=1001"), now=1000)


@pytest.mark.parametrize("header", ["", "t=,v1=", "t=x,v1=y", "v1=abc", "t=1000", "t=-1,v1=a", "t=²,v1=ä", "=,=,="])
def test_what_is_no_signature_is_none(header: str) -> None:
    assert not verify(b"key", b"body", header, now=1000)


async def test_without_a_key_nothing_is_signed(tmp_path: Path) -> None:
    async with CallbackTarget() as target, telling(tmp_path, key=None) as at:
        await run(at, target.url)
        assert all(HEADER not in call.headers for call in await target.heard(2))


async def test_callbacks_of_an_unknown_task(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        assert (await at.call("GET", "/tasks/none/callbacks"))[0] == 404
