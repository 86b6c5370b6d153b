# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node behind HTTP is the node itself: what it reports arrives bit by bit, what it raises is raised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from pydantic import SecretStr

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError, Report
from nemo_gym_polar.rollouts.nodes.http import HttpNode, make_client
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.far_node import TOKEN, Pair, paired
from tests.support.rollouts import task


@pytest.fixture
async def pair(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Pair]:
    async with paired(engine, tmp_path) as made:
        yield made


async def test_a_session_over_the_wire_is_the_session(pair: Pair) -> None:
    await pair.there.start(Assignment("s1", task(), 0))
    await pair.there.start(Assignment("s1", task(), 0))  # known already
    far = await pair.ended("s1")
    (near,) = await pair.here.reports(0, 0.0)
    assert near.result and far.result
    assert far.result.model_dump(exclude={"traces"}) == near.result.model_dump(exclude={"traces"})
    (theirs,), (ours,) = far.result.traces, near.result.traces
    for name in ("token_ids", "loss_mask", "logprobs"):
        assert np.array_equal(getattr(theirs, name), getattr(ours, name)), name
        assert getattr(theirs, name).dtype == getattr(ours, name).dtype
    assert (theirs.versions, theirs.turns, theirs.edge, theirs.group) == (
        ours.versions,
        ours.turns,
        ours.edge,
        ours.group,
    )
    assert await pair.there.load() == await pair.here.load()
    await pair.there.acknowledge(["s1"])
    assert await pair.there.reports(0, 0.0) == []


async def test_errors_are_the_nodes_own(pair: Pair) -> None:
    wrong = task()
    with pytest.raises(RolloutError, match="harness='emacs' is unknown"):
        broken = wrong.model_copy(update={"agent": wrong.agent.model_copy(update={"harness": "emacs"})})
        await pair.there.start(Assignment("s2", broken, 0))
    await pair.there.drain()
    with pytest.raises(NodeBusyError):
        await pair.there.start(Assignment("s3", task(), 0))
    await pair.there.cancel("nobody")
    assert (await pair.there.load()).draining


async def test_cancel_and_weights(pair: Pair) -> None:
    await pair.there.start(Assignment("s4", task("sleep 60"), 0))
    await pair.there.cancel("s4")
    assert (await pair.ended("s4")).status is SessionStatus.CANCELLED
    await pair.there.pause(2.0)
    assert (await pair.there.load()).paused
    await pair.there.resume("7")
    load = await pair.there.load()
    assert (load.paused, load.policy_version) == (False, "7")


async def test_a_stranger_a_silent_one_and_another_node(pair: Pair) -> None:
    async with make_client(SecretStr("wrong")) as client:
        with pytest.raises(NodeError, match="answered 401"):
            await HttpNode("far", pair.url, client).load()
    async with make_client(TOKEN) as client:
        with pytest.raises(NodeError, match="is node 'far', not 'near'"):
            await HttpNode("near", pair.url, client).load()
        with pytest.raises(NodeError, match="is node 'far', not 'near'"):
            await HttpNode("near", pair.url, client).reports(0, 0.0)
        with pytest.raises(NodeError, match="Cannot connect"):
            await HttpNode("far", "http://127.0.0.1:9", client).load()


class Odd(LocalNode):
    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        found = await super().reports(after, wait)
        for report in found:
            if report.session_id == "odd" and report.result:
                report.result.metadata["evaluation"] = "\udcff"
        return found


async def test_details_that_are_no_json_keep_no_report_back(engine: FakeEngine, tmp_path: Path) -> None:
    async with paired(engine, tmp_path, Odd) as pair:
        for name in ("odd", "even"):
            await pair.there.start(Assignment(name, task(), 0))
        odd, even = [(await pair.ended(name)).result for name in ("odd", "even")]
    assert odd and even
    assert (len(odd.traces), odd.metadata) == (1, {})
    assert "its details were no JSON and are left out" in str(odd.error)
    assert (len(even.traces), even.error, even.metadata["turns"]) == (1, None, 1)


async def test_sessions_as_the_reference_systems_gateways_have_them(pair: Pair) -> None:
    asked = {
        "session_id": "sk-polar-1",
        "task_id": "one",
        "instruction": "Say something.",
        "remaining_timeout_seconds": 60,
        "agent": {"harness": "shell", "custom_shell": {"command": task().agent.settings["command"]}},
        "evaluator": None,
        "metadata": {"group_id": "g"},
    }
    code, made = await pair.call("POST", "/sessions", json=asked)
    assert (code, made["session_id"], made["node_id"]) == (201, "sk-polar-1", "far")
    assert (await pair.call("POST", "/sessions", json=asked))[0] == 409
    await pair.ended("sk-polar-1")
    code, found = await pair.call("GET", "/sessions/sk-polar-1")
    assert (code, found["status"], found["metadata"]["group_id"]) == (200, "COMPLETED", "g")
    (trace,) = found["trajectory"]["traces"]
    assert sum(trace["loss_mask"]) == len(trace["response_ids"])
    assert [(one["role"], one["content"]) for one in trace["prompt_messages"]] == [
        ("system", "Be brief."),
        ("user", "Say something."),
    ]
    assert trace["response_messages"] == [{"role": "assistant", "content": "Done."}]
    code, calls = await pair.call("GET", "/sessions/sk-polar-1/completions")
    (one,) = calls["completions"]
    assert (
        one["response"]["prompt_token_ids"] + one["response"]["token_ids"]
        == trace["prompt_ids"] + trace["response_ids"]
    )
    assert [message["role"] for message in one["request"]["messages"]] == ["system", "user"]
    assert one["response"]["message"]["content"] == "Done."
    assert [row["session_id"] for row in (await pair.call("GET", "/sessions"))[1]["sessions"]] == ["sk-polar-1"]
    assert (await pair.call("DELETE", "/sessions/sk-polar-1"))[0] == 200
    assert (await pair.call("GET", "/sessions/sk-polar-1"))[0] == 404
    for wrong in ({"callback_url": "http://x/"}, {"session_id": "../x"}, {"agent": {"harness": "emacs"}}, {"agnt": 1}):
        assert (await pair.call("POST", "/sessions", json={**asked, "session_id": "s9", **wrong}))[0] == 422
    assert (await pair.call("GET", "/sessions/none/completions"))[0] == 404


async def test_the_node_is_behind_the_token(pair: Pair) -> None:
    async with aiohttp.ClientSession() as stranger:
        for method, path in (("GET", "/node/load"), ("GET", "/sessions"), ("POST", "/admin/inference/pause")):
            async with stranger.request(method, pair.url + path) as reply:
                assert reply.status == 401, path
        async with stranger.get(f"{pair.url}/sessions", headers={"x-polar-control-token": "hush-hush"}) as reply:
            assert reply.status == 200
