# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that come, stay and go over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.rollouts.control.coordinator import LOCAL
from tests.support.control_api import Desk, desk, task
from tests.support.simulated_node import SimulatedNode

NODE = {
    "node_id": "far",
    "gateway_url": "http://127.0.0.1:9/",
    "max_init_workers": 2,
    "max_run_workers": 4,
    "max_postrun_workers": 4,
    "heartbeat_interval_seconds": 5,
}


async def test_a_node_registers_as_the_reference_systems_do(at: Desk) -> None:
    code, made = await at.call("POST", "/nodes/register", json=NODE)
    assert code == 200
    assert (made["node_id"], made["gateway_url"], made["max_run_workers"]) == ("far", "http://127.0.0.1:9", 4)
    assert made["heartbeat_interval_seconds"] == 5
    code, beat = await at.call("POST", "/nodes/far/heartbeat", json={"metrics": {"run_inflight": 1}})
    assert (code, beat["healthy"], beat["draining"]) == (200, True, False)
    _, nodes = await at.call("GET", "/nodes")
    assert [node["node_id"] for node in nodes] == ["far", "n1"]
    assert (await at.call("GET", "/nodes/far"))[1]["kind"] == "http"


async def test_a_heartbeat_of_a_stranger_tells_it_to_register(at: Desk) -> None:
    code, said = await at.call("POST", "/nodes/nobody/heartbeat", json={})
    assert (code, said["detail"]) == (404, "there is no node 'nobody'; register it first")


async def test_a_stranger_does_not_take_the_place_of_the_services_own_node(at: Desk) -> None:
    own = SimulatedNode("own")
    await at.control.add_node(own, kind=LOCAL)
    code, said = await at.call("POST", "/nodes/register", json={**NODE, "node_id": "own"})
    assert (code, said["detail"]) == (409, "node_id='own' is the service's own node; give this one another id")
    assert (await at.call("GET", "/nodes/own"))[1]["kind"] == LOCAL
    assert not at.joined


async def test_drain_and_remove(at: Desk) -> None:
    await at.call("POST", "/nodes/register", json=NODE)
    code, drained = await at.call("DELETE", "/nodes/n1")
    assert (code, drained["draining"], drained["state"]) == (200, True, "draining")
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=3))
    async with asyncio.timeout(10):
        while True:
            if len(at.joined["far"].started) == 3:
                break
            await asyncio.sleep(0.01)
    assert not at.node.started
    assert (await at.call("DELETE", "/nodes/n1?remove=true"))[0] == 200
    assert (await at.call("GET", "/nodes/n1"))[0] == 404
    assert (await at.call("DELETE", "/nodes/n1"))[0] == 404


@pytest.mark.parametrize(
    "change",
    [
        {"gateway_url": "far"},
        {"gateway_url": "ftp://far"},
        {"gateway_url": "http://user:secret@far"},
        {"node_id": "../far"},
        {"node_id": ""},
        {"max_run_workers": 0},
        {"colour": "green"},
    ],
)
async def test_a_wrong_registration_is_refused(at: Desk, change: dict[str, Any]) -> None:
    assert (await at.call("POST", "/nodes/register", json={**NODE, **change}))[0] == 422


async def test_a_callback_of_a_node_is_thanked_for_and_not_believed(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task())
    async with asyncio.timeout(10):
        while True:
            if at.node.started:
                break
            await asyncio.sleep(0.01)
    name = at.node.started[0].session_id
    forged = {"session_id": name, "task_id": "one", "status": "COMPLETED", "trajectory": {"status": "COMPLETED"}}
    code, said = await at.call("POST", "/callbacks/session_result", json=forged)
    assert (code, said) == (200, {"status": "accepted"})
    assert (await at.call("GET", f"/sessions/{name}"))[1]["state"] == "QUEUED"
    forged["session_id"] = "nobody"
    assert (await at.call("POST", "/callbacks/session_result", json=forged))[0] == 404


async def test_weight_updates_reach_every_node(at: Desk) -> None:
    code, said = await at.call("POST", "/admin/inference/pause?timeout_seconds=3")
    assert (code, said["paused"]) == (200, True)
    assert at.node.paused == [3.0]
    assert (await at.call("POST", "/admin/inference/resume?policy_version=7"))[0] == 200
    assert (await at.call("POST", "/admin/inference/resume", json={"policy_version": 8}))[0] == 200
    assert (await at.call("POST", "/admin/inference/resume"))[0] == 200
    assert at.node.versions == ["7", "8", None]
    at.node.silent = True
    code, said = await at.call("POST", "/admin/inference/pause?timeout_seconds=1")
    assert code == 504
    assert "n1: it is silent" in said["detail"]
    for wrong in ("0", "nan", "inf", "-1", "soon"):
        assert (await at.call("POST", f"/admin/inference/pause?timeout_seconds={wrong}"))[0] == 422


async def test_a_service_that_is_full_says_so_in_its_health(tmp_path: Path) -> None:
    async with desk(tmp_path, token=None) as at:
        code, said = await at.call("GET", "/health")
        assert (code, said["status"], said["nodes"]) == (200, "ok", 1)
