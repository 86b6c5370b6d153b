# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes on a real Ray cluster of two machines, under one service that all tests of this module share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import numpy as np
import orjson
import psutil
import pytest
import pytest_asyncio
import ray

from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Flag, Turn
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.nodes.base import NodeError
from nemo_gym_polar.rollouts.task import AgentSpec, SessionStatus
from tests.support.fake_engine import FakeEngine, done
from tests.support.gateways import engine_settings
from tests.support.ray_hosts import Hosts
from tests.support.ray_services import WAIT, RayStand, ended, ready, running, until
from tests.support.rollouts import ASK, ASK_ONCE, Marked, task

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "key-that-nobody-may-see"


@dataclass(frozen=True, slots=True)
class Shared:
    control: Coordinator
    engine: FakeEngine
    hosts: Hosts
    directory: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    hosts: Hosts, model_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shared]:
    directory = tmp_path_factory.mktemp("service")
    async with FakeEngine(model_directory, key=SECRET) as engine:
        stand = RayStand(hosts, engine, directory)
        async with stand.service(2, node_fields={"engine": engine_settings(engine, api_key=SECRET)}) as control:
            yield Shared(control, engine, hosts, directory)
        await stand.end()


@pytest.fixture
def shared(service: Shared) -> Iterator[Shared]:
    yield service
    service.engine.served.clear()
    service.engine.script, service.engine.gate, service.engine.generate = done, None, True


def names(control: Coordinator) -> set[str]:
    return {node.node_id for node in control.nodes()}


def trained(directory: Path, task_id: str) -> list[list[int]]:
    """The trained tokens of every stored trace."""
    lines = [orjson.loads(line) for path in directory.glob("traces/*.jsonl") for line in path.read_bytes().splitlines()]
    arrays = [(line["token_ids"], line["loss_mask"]) for line in lines if line["task_id"] == task_id]
    return sorted(np.array(ids)[np.array(mask) == 1].tolist() for ids, mask in arrays)


def files(top: Path) -> dict[Path, bytes]:
    """All that is below it; what goes away meanwhile is left out."""
    found = {}
    for path in (Path(directory, name) for directory, _, names in os.walk(top) for name in names):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                found[path] = path.read_bytes()
    return found


async def recorded(shared: Shared, task_id: str) -> list[list[Turn]]:
    """The turns that the journal of each session has, on whichever node it ran."""
    found = []
    for session in await shared.control.sessions(task_id):
        (journal,) = shared.directory.glob(f"nodes/*/journals/{session.session_id}.journal")
        found.append([turn for turn in recover(journal).forest.turns if turn.has_tokens])
    return found


async def test_every_machine_has_a_node_on_its_address_and_a_group_is_spread(shared: Shared) -> None:
    nodes = shared.control.nodes()
    assert {node.metadata["machine"] for node in nodes} == set(shared.hosts.machines)
    assert {urlsplit(str(node.url)).hostname for node in nodes} == {node.metadata["address"] for node in nodes}
    await shared.control.submit(task(task_id="spread", num_samples=6))
    assert (await ended(shared.control, "spread")).usable_sessions == 6
    sessions = await shared.control.sessions("spread")
    assert {session.node_id for session in sessions} == {node.node_id for node in nodes}
    assert trained(shared.directory, "spread") == sorted(served.sampled for served in shared.engine.served)
    assert len(shared.engine.served) == 6


async def test_the_gateway_answers_on_the_network_and_opens_for_nobody(shared: Shared) -> None:
    url = f"{shared.control.nodes()[0].url}/s/unknown/v1/chat/completions"
    body = {"model": "m", "messages": []}
    async with aiohttp.ClientSession() as client, client.post(url, json=body, headers={"x-api-key": "x"}) as reply:
        assert reply.status == 401


async def test_a_task_that_no_node_can_run_is_refused_by_name(shared: Shared) -> None:
    wrong = task(task_id="wrong").model_copy(update={"agent": AgentSpec(harness="none")})
    await shared.control.submit(wrong)
    await ended(shared.control, "wrong")
    (session,) = await shared.control.sessions("wrong")
    assert session.status is SessionStatus.ERROR
    assert "harness" in str(session.error) and "\n" not in str(session.error)


async def test_results_with_large_arrays_come_whole(shared: Shared) -> None:
    """Past what Ray sends along with an answer: they lie in the object store."""
    shared.engine.script = lambda context: " ".join(str(number) for number in range(12_000))
    await shared.control.submit(task(task_id="large", num_samples=2))
    await ended(shared.control, "large")
    found = trained(shared.directory, "large")
    assert found == sorted(served.sampled for served in shared.engine.served)
    assert min(map(len, found)) >= 4096


async def test_cancel_reaches_the_node(shared: Shared, marked: Marked) -> None:
    await shared.control.submit(task(ASK_ONCE + marked.command, task_id="cancelled"))
    assert await marked.becomes(True, within=60)
    await shared.control.cancel("cancelled")
    assert await marked.becomes(False, within=60)
    await ended(shared.control, "cancelled")
    assert [one.status for one in await shared.control.sessions("cancelled")] == [SessionStatus.CANCELLED]


async def test_pause_and_resume_reach_every_node_and_stamp_the_version(shared: Shared) -> None:
    """Two calls a session, the weights replaced between them, by an engine that doesn't name its weights."""
    control, engine, gate = shared.control, shared.engine, shared.directory / "paused"
    engine.generate = False
    command = ASK + 'ask "$POLAR_INSTRUCTION" > first\n' + WAIT.format(gate) + "ask again | tail -n 1 > answer.json\n"
    await control.resume("7")
    await control.submit(task(command, backend="local", num_samples=4, task_id="paused"))
    await until(lambda: len(engine.served) == 4)
    await control.pause(30.0)
    gate.touch()
    await asyncio.sleep(1.0)
    assert (len(engine.served), engine.running) == (4, 0)
    await until(lambda: all(node.policy_version == "7" for node in control.nodes()))
    await control.resume("8")
    assert (await ended(control, "paused")).usable_sessions == 4
    await until(lambda: all(node.policy_version == "8" for node in control.nodes()))
    turns = await recorded(shared, "paused")
    assert [[span.version for turn in session for span in turn.versions] for session in turns] == [["7", "8"]] * 4


async def test_an_update_in_flight_is_told_to_every_node(shared: Shared) -> None:
    """Generations that saw both weights are marked; none waits."""
    control, engine = shared.control, shared.engine
    engine.generate, engine.gate = False, asyncio.Event()
    await control.resume("7")
    await control.submit(task(backend="local", num_samples=4, task_id="in-flight"))
    await until(lambda: engine.running == 4)
    await control.resume("8")
    engine.gate.set()
    await ended(control, "in-flight")
    turns = await recorded(shared, "in-flight")
    assert [[Flag.WEIGHTS_CHANGED in turn.flags for turn in session] for session in turns] == [[True]] * 4


async def test_a_pause_that_takes_too_long_names_the_nodes(shared: Shared) -> None:
    shared.engine.gate = asyncio.Event()
    await shared.control.submit(task(backend="local", num_samples=2, task_id="long"))
    await until(lambda: shared.engine.running == 2)
    with pytest.raises(NodeError) as caught:
        await shared.control.pause(0.2)
    assert all(node.node_id in str(caught.value) for node in shared.control.nodes())
    await shared.control.resume("8")
    shared.engine.gate.set()
    assert (await ended(shared.control, "long")).usable_sessions == 2


async def test_secrets_reach_the_nodes_and_nothing_else(shared: Shared) -> None:
    await shared.control.submit(task(task_id="secret", num_samples=2))
    assert (await ended(shared.control, "secret")).usable_sessions == 2
    told = repr(ray._private.state.actors())
    assert all(node.node_id in told for node in shared.control.nodes())
    assert SECRET not in told
    mine = {os.getpid()}
    processes = [one.info for one in psutil.process_iter(["pid", "cmdline", "environ"]) if one.info["pid"] not in mine]
    assert SECRET not in repr(processes)
    written = {**files(shared.hosts.directory), **files(shared.directory)}
    assert written and not [path for path, content in written.items() if SECRET.encode() in content]


async def test_a_killed_node_is_known_as_lost_retried_elsewhere_and_replaced(shared: Shared) -> None:
    control, gate = shared.control, shared.directory / "killed"
    await control.submit(task(ASK_ONCE + WAIT.format(gate), backend="local", num_samples=2, task_id="killed"))
    begun = await running(control, "killed", number=2)
    victim = next(node for node in control.nodes() if node.node_id == begun[0].node_id)
    os.kill(victim.metadata["pid"], signal.SIGKILL)
    await until(lambda: victim.node_id not in names(control))
    gate.touch()
    assert (await ended(control, "killed")).usable_sessions == 2
    sessions = await control.sessions("killed")
    given_up = {(one.session_id, one.current) for one in sessions if one.lost}
    assert given_up == {(one.session_id, False) for one in begun if one.node_id == victim.node_id}
    assert len(sessions) == 2 + len(given_up)
    assert all(session.status is SessionStatus.COMPLETED for session in sessions if session.current)
    await until(lambda: len(ready(control)) == 2)
    assert victim.node_id not in names(control)
    await until(lambda: all(node.policy_version == "8" for node in control.nodes()))


async def test_a_machine_that_joins_gets_a_node_and_one_that_dies_loses_it(shared: Shared) -> None:
    control, hosts, gate = shared.control, shared.hosts, shared.directory / "joined"
    joined = await asyncio.to_thread(hosts.add)
    await until(lambda: joined in {node.metadata["machine"] for node in ready(control)})
    victim = next(node for node in control.nodes() if node.metadata["machine"] == joined)
    await control.submit(task(ASK_ONCE + WAIT.format(gate), backend="local", num_samples=3, task_id="joined"))
    await running(control, "joined", number=3)
    await asyncio.to_thread(hosts.kill, joined)
    await until(lambda: victim.node_id not in names(control))
    gate.touch()
    assert (await ended(control, "joined")).usable_sessions == 3
    assert [one.node_id for one in await control.sessions("joined") if one.lost] == [victim.node_id]
    assert len(control.nodes()) == 2


async def test_a_drained_node_ends_when_it_is_empty_and_its_machine_gets_no_other(shared: Shared) -> None:
    """The last of this module: the machine stays without."""
    control, gate = shared.control, shared.directory / "drained"
    await control.submit(task(ASK_ONCE + WAIT.format(gate), backend="local", num_samples=2, task_id="drained"))
    begun = await running(control, "drained", number=2)
    node = next(one for one in control.nodes() if one.node_id == begun[0].node_id)
    await control.drain(node.node_id)
    assert psutil.pid_exists(node.metadata["pid"])
    gate.touch()
    await ended(control, "drained")
    await until(lambda: not psutil.pid_exists(node.metadata["pid"]))
    await asyncio.sleep(1.0)  # several looks at the cluster
    assert node.metadata["machine"] not in {one.metadata["machine"] for one in control.nodes()}
    assert not [one for one in await control.sessions("drained") if one.lost]
