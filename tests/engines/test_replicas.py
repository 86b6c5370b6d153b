# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which replica a session goes to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.engines.replicas import choose
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import bench, chat, user

URLS = [f"http://engine-{number}:8000" for number in range(8)]
SLACK = 4
groups = st.text(min_size=1, max_size=8)
loads = st.fixed_dictionaries({url: st.integers(0, 20) for url in URLS})


@given(groups, loads)
def test_a_group_gets_a_free_replica_whoever_asks(group: str, load: dict[str, int]) -> None:
    chosen = choose(URLS, load, group)
    assert load[chosen] <= min(load.values()) + SLACK
    assert choose(URLS[::-1], load, group) == chosen


@given(groups, loads, st.sampled_from(URLS))
def test_a_replica_that_goes_moves_only_its_own(group: str, load: dict[str, int], gone: str) -> None:
    even = Counter(dict.fromkeys(URLS, 0))
    chosen = choose(URLS, even, group)
    if chosen != gone:
        assert choose([url for url in URLS if url != gone], even, group) == chosen


def test_groups_are_spread() -> None:
    favourites = Counter(choose(URLS, Counter(), f"task-{number}") for number in range(800))
    assert set(favourites) == set(URLS)
    assert max(favourites.values()) < 2 * min(favourites.values())


def test_without_a_group_the_emptiest_gets_it() -> None:
    load = Counter({url: 5 - number % 5 for number, url in enumerate(URLS)})
    assert choose(URLS, load, None) == URLS[4]


async def test_two_gateways_send_a_group_to_the_same_replica(engine: FakeEngine, tmp_path: Path) -> None:
    async with FakeEngine(engine.tokenizer_directory) as second:
        for gateway in ("a", "b"):
            async with bench(engine, tmp_path / gateway, more_urls=(second.url,)) as made:
                for _ in range(2):
                    session = await made.gateway.open(group="task")
                    reply = await made.post(session, chat(user("hello")))
                    assert reply.status == 200
        assert sorted([len(engine.served), len(second.served)]) == [0, 4]
        async with bench(engine, tmp_path / "c", more_urls=(second.url,)) as made:
            for _ in range(2 * SLACK):
                await made.post(await made.gateway.open(group="task"), chat(user("hello")))
        other, favourite = sorted([len(engine.served), len(second.served)])
        assert other and (favourite - 4) - other <= SLACK + 1, "a favourite that is full is passed over"
