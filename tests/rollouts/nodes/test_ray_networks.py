# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes on a Ray cluster whose machines have their own addresses and disks, and a link between them that is cut."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.ray_machines import Site, site, until
from tests.support.ray_services import WAIT

ASK = """
import sys, urllib.error, urllib.request
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=60)
except urllib.error.HTTPError as error:
    print(error.code, end="")
"""
HASTY = "control.node_timeout=8"  # Ray takes longer to give up a machine


@pytest.mark.timeout(1200)
async def test_nodes_work_across_a_network_and_a_link_that_is_cut_and_healed_costs_no_session(
    model_directory: Path, short_path: Path
) -> None:
    async with site(short_path, model_directory, 2) as made:
        await made.serve(HASTY)
        await until(lambda: len(made.nodes()) == 2)
        check_addresses(made)
        await made.submit("plain", 4, "bubblewrap")
        await until(lambda: made.count("plain", "COMPLETED") == 4)
        assert {one["node_id"] for one in made.sessions("plain")} == {one["node_id"] for one in made.nodes().values()}
        await cut_and_heal(made)
        made.record.check(model_directory)


async def cut_and_heal(made: Site) -> None:
    """The service gives up what it can't see. What went on beyond the cut is ended there, and doesn't count."""
    gate, far = made.shared / "open", made.machines[-1]
    await made.submit("cut", 4, before=WAIT.format(gate))
    await until(lambda: made.count("cut", "RUNNING") == 4)
    beyond = made.nodes()[far.address]["node_id"]
    mine = {one["session_id"] for one in made.sessions("cut") if one["node_id"] == beyond}
    made.network.cut(far)
    await until(lambda: made.ran("cut", lost=True) >= mine)
    made.network.heal(far)
    await until(lambda: made.told("session.late_result") >= mine)
    assert not far.named(mine), "agents that were given up are ended"
    gate.touch()
    await until(lambda: made.count("cut", "COMPLETED") == 4)
    assert made.nodes()[far.address]["node_id"] == beyond, "its node is the same as before"


def check_addresses(made: Site) -> None:
    """Every gateway listens where its machine is, and nowhere else; others reach it there."""
    for machine in made.machines:
        url = urlsplit(made.nodes()[machine.address]["url"])
        assert url.hostname == machine.address
        told = machine.run("ss", "--listening", "--tcp", "--numeric", "--no-header")
        doors = [line.split()[3] for line in told.splitlines()]
        assert [door for door in doors if door.endswith(f":{url.port}")] == [url.netloc]
        assert made.head.run(sys.executable, "-c", ASK, f"{url.geturl()}/s/unknown/v1/models") == "401"
