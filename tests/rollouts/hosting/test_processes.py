# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Real processes: the service, nodes that join it, commands that speak to it, and kills."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nemo_gym_polar.rollouts.api.shapes import SessionShape
from nemo_gym_polar.rollouts.client import RolloutClient
from nemo_gym_polar.rollouts.control.records import TaskState
from tests.support.commands import command_line
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE
from tests.support.serve_process import TOKEN, ServeProcess, engine_options, write_task

SERVICE = ("--service", "--port", "0", "--directory", "run", "node.shutdown_grace=90")


def task(command: str = ASK_ONCE, **fields: Any) -> dict[str, Any]:
    """As a user of the reference system would write it."""
    return {
        "task_id": "one",
        "instruction": "Say something.",
        "timeout_seconds": 120,
        "agent": {"harness": "shell", "custom_shell": {"command": command}},
        "evaluator": {"strategy": "command", "config": {"command": "test -s answer.json"}},
        **fields,
    }


def waiting(directory: Path) -> str:
    """A harness that asks once and then waits for a file of the host."""
    return ASK_ONCE + f"until test -e {directory}/go; do sleep 0.1; done\n"


def said(results: Sequence[SessionShape]) -> None:
    """The messages of a trace stand beside its tokens, as the reference system's trainers read them."""
    assert results
    for one in results:
        assert one.trajectory
        (trace,) = one.trajectory.traces
        assert [message["role"] for message in trace.prompt_messages] == ["system", "user"]
        assert trace.prompt_messages[1]["content"] == "Say something."
        assert trace.response_messages == [{"role": "assistant", "content": "Done."}]


async def running(client: RolloutClient, count: int) -> None:
    async with asyncio.timeout(180):
        while True:
            found = await client.sessions("one")
            if sum(one.state == "RUNNING" and one.current for one in found) == count:
                return
            await asyncio.sleep(0.1)


async def draining(client: RolloutClient) -> None:
    async with asyncio.timeout(180):
        while True:
            if [one.state for one in await client.nodes()] == ["draining"]:
                return
            await asyncio.sleep(0.1)


async def test_one_machine_needs_nothing_else(engine: FakeEngine, tmp_path: Path) -> None:
    async with ServeProcess(tmp_path, *SERVICE, *engine_options(engine)) as service:
        path = write_task(tmp_path / "task.json", task(num_samples=3))
        ended = await service.polar("submit", str(path), "--wait", "--timeout", "180", "--json")
        assert ended.returncode == 0, ended.stderr
        told = json.loads(ended.stdout)
        assert (told["status"], told["usable_sessions"]) == ("completed", 3)
        async with RolloutClient(service.url, TOKEN) as client:
            kept = [(await client.traces(one["session_id"]))[0] for one in told["results"]]
            said((await client.task("one")).results)
        sampled = sorted(served.context + served.sampled for served in engine.served)
        assert sorted(trace.token_ids.tolist() for trace in kept) == sampled
        for command in (["status"], ["status", "one"], ["nodes"], ["watch", "one"], ["cancel", "one"]):
            shown = await service.polar(*command)
            assert (shown.returncode, shown.stderr) == (0, ""), command
            assert "one" in shown.stdout or "local" in shown.stdout
        assert await service.stop(signal.SIGTERM) == 0
        assert "Unclosed" not in service.log.read_text()


async def test_a_killed_service_goes_on_where_it_was(engine: FakeEngine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    local = {"runtime": {"backend": "local"}}
    options = (*SERVICE, *engine_options(engine), "rollouts.run_workers=2", "rollouts.ready_buffer=0")
    async with ServeProcess(tmp_path, *options) as service:
        async with RolloutClient(service.url, TOKEN) as client:
            await client.submit(task(waiting(tmp_path), num_samples=3, **local))
            await running(client, 2)
        await service.stop(signal.SIGKILL)
        await service.start()
        async with RolloutClient(service.url, TOKEN) as client:
            await client.submit(task(waiting(tmp_path), num_samples=3, **local))  # nothing new: it is known
            await running(client, 2)
            go.touch()
            done = await client.wait("one", timeout=180)
            attempts = await client.sessions("one")
        assert done.status is TaskState.COMPLETED
        assert sorted((one.sample, one.state) for one in done.results) == [(n, "COMPLETED") for n in range(3)]
        given_up = [one for one in attempts if not one.current]
        assert {one.lost for one in given_up} == {"node local ended with the service"}
        assert len(attempts) - len(given_up) == 3


async def test_a_node_elsewhere_outlives_its_service(engine: FakeEngine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with ServeProcess(tmp_path / "service", "--service", "--port", "0", "--directory", "run") as service:
        join = ("--join", service.url, "--node-id", "far", "--port", "0", "--directory", "run", "node.heartbeat=1")
        async with ServeProcess(tmp_path / "node", *join, *engine_options(engine)) as node:
            async with RolloutClient(service.url, TOKEN) as client:
                assert [one.node_id for one in await client.nodes()] == ["far"]
                local = {"runtime": {"backend": "local"}}
                await client.submit(task(waiting(tmp_path), num_samples=2, **local))
                await running(client, 2)
            again = ServeProcess(service.directory, "--service", "--port", service.port, "--directory", "run")
            await service.stop(signal.SIGKILL)
            async with again, RolloutClient(again.url, TOKEN) as client:
                await running(client, 2)
                go.touch()
                done = await client.wait("one", timeout=180)
                assert [(one.attempt, one.state) for one in done.results] == [(1, "COMPLETED")] * 2
                traces = [(await client.traces(one.session_id))[0] for one in done.results]
                said(done.results)
                served = sorted(one.context + one.sampled for one in engine.served)
                assert sorted(trace.token_ids.tolist() for trace in traces) == served
                assert all(np.isfinite(trace.logprobs).all() for trace in traces)
                assert await node.stop(signal.SIGTERM) == 0
                async with asyncio.timeout(180):
                    while True:
                        if not await client.nodes():
                            break
                        await asyncio.sleep(0.1)


async def test_a_node_registers_with_a_service_that_never_knew_it(engine: FakeEngine, tmp_path: Path) -> None:
    async with ServeProcess(tmp_path / "service", "--service", "--port", "0", "--directory", "run") as service:
        join = ("--join", service.url, "--node-id", "far", "--port", "0", "--directory", "run", "node.heartbeat=0.5")
        async with ServeProcess(tmp_path / "node", *join, *engine_options(engine)):
            other = ServeProcess(tmp_path / "other", "--service", "--port", service.port, "--directory", "run")
            await service.stop(signal.SIGKILL)
            async with other, RolloutClient(other.url, TOKEN) as client, asyncio.timeout(180):
                while True:
                    if [one.node_id for one in await client.nodes()] == ["far"]:
                        break
                    await asyncio.sleep(0.1)


async def test_a_node_with_the_wrong_token_is_told_so(engine: FakeEngine, tmp_path: Path) -> None:
    async with ServeProcess(tmp_path / "service", "--service", "--port", "0", "--directory", "run") as service:
        stranger = ServeProcess(tmp_path / "node", token="guessed")
        stranger.directory.mkdir()
        stranger.url = service.url
        ended = await stranger.polar(
            "serve", "--join", service.url, "--node-id", "x", "--port", "0", *engine_options(engine)
        )
        assert ended.returncode == 1
        assert ended.stderr.splitlines()[-1].startswith("polar: error: the service at")
        assert "401" in ended.stderr


async def test_a_service_told_to_stop_lets_its_sessions_end(engine: FakeEngine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with ServeProcess(tmp_path, *SERVICE, *engine_options(engine)) as service:
        async with RolloutClient(service.url, TOKEN) as client:
            await client.submit(task(waiting(tmp_path), runtime={"backend": "local"}))
            await running(client, 1)
            stopping = asyncio.create_task(service.stop(signal.SIGTERM))
            await draining(client)
            go.touch()
            assert await stopping == 0
        await service.start()
        async with RolloutClient(service.url, TOKEN) as client:
            done = await client.task("one")
        assert [(one.attempt, one.state) for one in done.results] == [(1, "COMPLETED")]


async def test_a_service_whose_own_node_was_removed_stops_well(engine: FakeEngine, tmp_path: Path) -> None:
    async with ServeProcess(tmp_path, *SERVICE, *engine_options(engine)) as service:
        async with RolloutClient(service.url, TOKEN) as client:
            await client.drain("local", remove=True)
            assert await client.nodes() == []
        assert await service.stop(signal.SIGTERM) == 0
        assert "Traceback" not in service.log.read_text()


@pytest.mark.parametrize("kind", ["--service", "--join"])
async def test_what_waits_for_its_engine_can_be_stopped(engine: FakeEngine, tmp_path: Path, kind: str) -> None:
    asked = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()  # and never answers
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        _, *options = engine_options(engine)
        options[0] = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        mode = SERVICE if kind == "--service" else ("--join", "http://127.0.0.1:9", "--node-id", "x", "--port", "0")
        line = command_line("polar", "serve", *mode, "--engine", *options)
        process = await asyncio.create_subprocess_exec(*line, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
        assert process.stderr
        async with asyncio.timeout(180):
            await asked.wait()
            process.terminate()
            said = await process.stderr.read()
            assert await process.wait() == 1
    assert said.endswith(b"polar: error: told to stop before it had started\n")


async def test_a_node_that_waits_for_its_service_can_be_stopped(engine: FakeEngine, tmp_path: Path) -> None:
    join = ("serve", "--join", "http://127.0.0.1:9", "--node-id", "x", "--port", "0", "--directory", "run")
    line = command_line("polar", *join, *engine_options(engine))
    process = await asyncio.create_subprocess_exec(*line, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
    assert process.stderr
    async with asyncio.timeout(180):
        while b"does not answer" not in await process.stderr.readline():
            pass
        process.terminate()
        rest = await process.stderr.read()
        assert await process.wait() == 1
    assert rest.endswith(b"polar: error: told to stop before the service at http://127.0.0.1:9 answered\n")
