# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks over HTTP, as a trainer that knows the reference system asks for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control_api import Desk, desk, task


async def until(at: Desk, path: str, field: str, value: Any) -> Any:
    async with asyncio.timeout(10):
        while True:
            _, found = await at.call("GET", path)
            if found[field] == value:
                return found
            await asyncio.sleep(0.02)


async def test_a_task_from_submission_to_its_end(at: Desk) -> None:
    code, made = await at.call("POST", "/rollout/task/submit", json=task(num_samples=2))
    assert (code, made) == (200, {"task_id": "one", "status": "running", "total_sessions": 2})
    await at.started(2)
    code, seen = await at.call("GET", "/rollout/task/one")
    assert (seen["status"], seen["completed_sessions"], seen["results"]) == ("running", 0, [])
    first, second = (work.session_id for work in at.node.started)
    at.node.end(first)
    at.node.end(second, SessionStatus.TIMEOUT, reward=0.25)
    done = await until(at, "/rollout/task/one", "status", "completed")
    assert [(one["status"], one["state"], one["reward"]) for one in done["results"]] == [
        ("COMPLETED", "COMPLETED", 1.0),
        ("TIMEOUT", "TIMEOUT", 0.25),
    ]
    assert done["results"][0]["trajectory"]["status"] == "COMPLETED"
    assert (done["completed_sessions"], done["usable_sessions"]) == (2, 1)


@pytest.mark.parametrize(
    ("status", "name"),
    [("QUEUED", "REGISTERED"), ("INIT", "INITIALIZING"), ("READY", "READY"), ("POSTRUN", "POST_RUN")],
)
async def test_live_sessions_have_the_reference_systems_names(at: Desk, status: str, name: str) -> None:
    await at.call("POST", "/rollout/task/submit", json=task())
    await at.started(1)
    at.node.move(at.node.started[0].session_id, SessionStatus(status))
    path = f"/sessions/{at.node.started[0].session_id}"
    found = await until(at, path, "state", status)
    assert (found["status"], found["trajectory"]) == (name, None)
    _, listed = await at.call("GET", "/tasks/one/sessions")
    assert [one["status"] for one in listed["sessions"]] == [name]


async def test_the_same_task_again_is_the_same_task(at: Desk) -> None:
    assert (await at.call("POST", "/rollout/task/submit", json=task()))[0] == 200
    assert (await at.call("POST", "/rollout/task/submit", json=task(num_samples=1)))[0] == 200
    await at.started(1)
    code, said = await at.call("POST", "/rollout/task/submit", json=task(instruction="Other."))
    assert code == 409
    assert "other content" in said["detail"]
    assert len(at.node.started) == 1


async def test_cancel(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=6))
    await at.started(4)
    assert (await at.call("DELETE", "/rollout/task/one"))[0] == 200
    done = await until(at, "/rollout/task/one", "status", "cancelled")
    assert {(one["status"], one["state"]) for one in done["results"]} == {("ERROR", "CANCELLED")}
    assert (await at.call("POST", "/rollout/task/submit", json=task(num_samples=6)))[0] == 409


async def test_cancel_before_it_comes(at: Desk) -> None:
    assert (await at.call("DELETE", "/rollout/task/late"))[0] == 404
    code, said = await at.call("DELETE", "/rollout/task/late?register_if_missing=true")
    assert (code, said["status"], said["total_sessions"]) == (200, "cancelled", 0)
    code, said = await at.call("POST", "/rollout/task/submit", json=task("late"))
    assert code == 409
    assert "cancelled" in said["detail"]


async def test_one_session_is_cancelled(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=2))
    await at.started(2)
    await at.call("DELETE", f"/sessions/{at.node.started[0].session_id}")
    at.node.end(at.node.started[1].session_id)
    done = await until(at, "/rollout/task/one", "status", "completed")
    assert [one["state"] for one in done["results"]] == ["CANCELLED", "COMPLETED"]


async def test_lists(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task("one"))
    _, before = await at.call("GET", "/tasks")
    await at.call("POST", "/rollout/task/submit", json=task("a/b c"))
    _, found = await at.call("GET", "/tasks")
    assert [one["task_id"] for one in found["tasks"]] == ["a/b c", "one"]
    queries = {"limit=1": 1, "status=completed": 0, "status=running": 2, "harness=pi": 0, "harness=shell": 2}
    queries[f"since={before['tasks'][0]['created_at'] + 1e-6}"] = 1
    for query, count in queries.items():
        _, found = await at.call("GET", f"/tasks?{query}")
        assert len(found["tasks"]) == count, query
    assert (await at.call("GET", "/rollout/task/a%2Fb%20c"))[1]["task_id"] == "a/b c"
    assert (await at.call("GET", "/tasks/a%2Fb%20c/sessions"))[1]["task_id"] == "a/b c"


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"num_sample": 3}, ["body", "num_sample"], "num_sample=3: unknown field; did you mean 'num_samples'?"),
        ({"runtime": {"imag": "x"}}, ["body", "runtime", "imag"], "did you mean 'image'?"),
        ({"agent": {"mcp_server": []}}, ["body", "agent", "mcp_server"], "did you mean 'mcp_servers'?"),
        (
            {"runtime": {"prepare": [{"type": "exec", "comand": "x"}]}},
            ["body", "runtime", "prepare", 0, "comand"],
            "did you mean 'command'?",
        ),
        ({"num_samples": 0}, ["body", "num_samples"], "num_samples=0: Input should be greater than or equal to 1"),
        ({"instruction": None}, ["body", "instruction"], "instruction=None: Input should be a valid string"),
        ({"callback_url": "ftp://x"}, ["body", "callback_url"], "callback_url='ftp://x': is no address to call"),
        ({"metadata": {"agent_timeout": "soon"}}, ["body"], "metadata.agent_timeout='soon': give a positive number"),
        ({"num_samples": 2, "early_stop_min_usable_sessions": 3}, ["body"], "early_stop_min_usable_sessions=3 is more"),
        ({"agent": {"harness": "pi", "import_path": "a:b"}}, ["body", "agent"], "give one of them"),
        ({"agent": {"harness": "emacs"}}, ["body", "agent", "harness"], "agent.harness='emacs' is unknown: choose"),
        ({"agent": {"settings": {"nothing": 1}}}, ["body", "agent", "settings", "nothing"], "Extra inputs"),
        ({"runtime": {"backend": "docker", "image": "x"}}, ["body", "runtime", "backend"], "choose one of bubblewrap"),
        ({"runtime": {"network": "host"}}, ["body", "runtime", "network"], "reaches the gateway and nothing else"),
        ({"runtime": {"kwargs": {"volumes": []}}}, ["body", "runtime", "kwargs"], "drop it"),
        ({"evaluator": {"strategy": "harbor"}}, ["body", "evaluator", "strategy"], "choose one of command"),
        ({"builder": {"strategy": "best"}}, ["body"], "best"),
        ({"timeout_seconds": "inf"}, ["body", "timeout_seconds"], "finite"),
        ({"task_id": "a\nb"}, ["body"], "printable"),
    ],
)
async def test_what_is_wrong_is_named(at: Desk, change: dict[str, Any], place: list[Any], words: str) -> None:
    code, said = await at.call("POST", "/rollout/task/submit", json={**task(), **change})
    assert code == 422
    assert said["detail"][0]["loc"] == place
    assert words in said["detail"][0]["msg"]
    assert not at.node.started


async def test_values_that_may_be_secret_are_not_repeated(at: Desk) -> None:
    agent = {"harness": "pi", "env": {"MY_KEY": ["s3cret"]}, "settings": "s3cret"}
    _, said = await at.call("POST", "/rollout/task/submit", json={**task(), "agent": {**agent, "settings": {}}})
    assert "s3cret" not in str(said)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null"])
async def test_no_json_is_no_task(at: Desk, body: bytes) -> None:
    code, said = await at.call("POST", "/rollout/task/submit", data=body, headers={"content-type": "application/json"})
    assert code in (400, 422)
    assert said["detail"]


async def test_large_requests_are_refused(tmp_path: Path) -> None:
    async with desk(tmp_path, api={"max_body_bytes": 2000}) as at:
        code, said = await at.call("POST", "/rollout/task/submit", json=task(instruction="x" * 2000))
        assert (code, said["detail"]) == (413, "the request is larger than 2000 bytes (max_body_bytes)")

        async def pieces() -> Any:
            for _ in range(50):
                yield b"x" * 100

        try:
            code, _ = await at.call("POST", "/rollout/task/submit", data=pieces())
            assert code == 413
        except aiohttp.ClientConnectionError:
            pass  # refused while it was still being sent
        assert (await at.call("GET", "/tasks"))[0] == 200


async def test_back_pressure(tmp_path: Path) -> None:
    async with desk(tmp_path, max_waiting=2, capacity=1, retry_after=7.0) as at:
        assert (await at.call("POST", "/rollout/task/submit", json=task("one", num_samples=2)))[0] == 200
        await at.started(1)
        async with at.client.post(f"{at.url}/rollout/task/submit", json=task("two", num_samples=2)) as reply:
            assert (reply.status, reply.headers["Retry-After"]) == (429, "7")
            assert "submit again in 7 s" in (await reply.json())["detail"]
        assert (await at.call("GET", "/rollout/task/two"))[0] == 404


async def test_the_door(at: Desk, tmp_path: Path) -> None:
    paths = [
        "/tasks",
        "/nodes",
        "/events",
        "/rollout/status",
        "/rollout/task/x",
        "/sessions/x",
        "/admin/inference/status",
    ]
    async with aiohttp.ClientSession() as stranger:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "hush-hush"},
            {"x-polar-control-token": "x"},
        ):
            for path in paths:
                async with stranger.get(at.url + path, headers=headers) as reply:
                    assert reply.status == 401, path
                    assert "control token" in (await reply.json())["detail"]
        for headers in ({"x-polar-control-token": "hush-hush"}, {"authorization": "bearer hush-hush"}):
            async with stranger.get(f"{at.url}/tasks", headers=headers) as reply:
                assert reply.status == 200
        for path in ("/health", "/openapi.json", "/docs"):
            async with stranger.get(at.url + path) as reply:
                assert reply.status == 200


async def test_status(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=6))
    await at.started(4)
    _, found = await at.call("GET", "/rollout/status")
    assert found["tasks"] == {"running": 1}
    assert sum(found["queue"].values()) == 2
    _, health = await at.call("GET", "/health")
    assert (health["status"], health["nodes_ready"], health["sessions"]) == ("ok", 1, 6)
