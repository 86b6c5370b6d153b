# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A group over several nodes: whoever begins with another prompt is named, with the text, and counted."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from nemo_gym_polar.rollouts.client import RolloutClient
from tests.support.control import until
from tests.support.control_api import TOKEN, Desk, desk
from tests.support.fake_engine import FakeEngine
from tests.support.far_node import paired
from tests.support.rollouts import ASK, task

SAME = ASK + 'ask "Say something." > answer.json\n'
SAYS_WHERE = ASK + 'ask "You are in a run of $(cat /proc/sys/kernel/random/uuid)." > answer.json\n'


async def mismatches(at: Desk) -> float:
    async with at.client.get(f"{at.url}/metrics") as reply:
        families = {one.name: one for one in text_string_to_metric_families(await reply.text())}
    (sample,) = (
        one for one in families["polar_service_first_prompt_mismatches"].samples if one.name.endswith("_total")
    )
    return float(sample.value)


async def test_a_group_on_two_nodes(engine: FakeEngine, tmp_path: Path) -> None:
    async with (
        paired(engine, tmp_path / "a", name="a") as one,
        paired(engine, tmp_path / "b", name="b") as other,
        desk(tmp_path / "service") as at,
        RolloutClient(at.url, TOKEN) as client,
    ):
        await at.control.remove(at.node.id)
        for pair in (one, other):
            await at.control.add_node(pair.there, kind="http", url=pair.url)
        await until(lambda: all(member.attached for member in at.control.roster.members.values()))
        same = await client.submit(task(SAME, task_id="same", num_samples=2))
        equal = await client.wait(same.task_id, timeout=60)
        assert {found.node_id for found in equal.results} == {"a", "b"}
        assert equal.first_prompt_mismatches == []
        assert len({found.first_prompt for found in equal.results}) == 1
        assert equal.results[0].first_prompt
        assert await mismatches(at) == 0

        await client.submit(task(SAYS_WHERE, task_id="leaks", num_samples=2))
        leaky = await client.wait("leaks", timeout=60)
        (odd,) = leaky.first_prompt_mismatches
        first, second = leaky.results
        assert first.node_id != second.node_id
        assert (odd.sample, odd.session_id) == (1, second.session_id)
        assert odd.theirs and odd.own
        assert odd.theirs != odd.own
        assert "You are in a run of " in odd.theirs
        assert "You are in a run of " in odd.own
        assert await mismatches(at) == 1
        kept = await at.control.store.events(task_id="leaks")
        assert [event.data["first_prompt_mismatches"] for event in kept if event.kind == "task.completed"] == [[1]]
