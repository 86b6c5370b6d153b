# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.export.lines import LINE
from nemo_gym_polar.export.prefix_tree import decode_tree, encode_tree
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.trace import Trace
from tests.export.worlds import BUILDERS, worlds
from tests.forest.world import World
from tests.support.traces import equal, traces


def written(rows: Iterable[Trace]) -> dict[str, Any]:
    line: dict[str, Any] = orjson.loads(orjson.dumps(encode_tree("g", [(trace, {}) for trace in rows]), option=LINE))
    return line


def prefixes(rows: Iterable[Trace]) -> int:
    """How many tokens there are when equal beginnings count once: one for each different prefix."""
    return len({tuple(trace.token_ids[: end + 1].tolist()) for trace in rows for end in range(len(trace))})


@settings(deadline=None)
@given(st.lists(traces(alphabet=1), max_size=8))
def test_every_trace_is_rebuilt_and_no_beginning_stored_twice(group: list[Trace]) -> None:
    tree = written(group)
    assert all(map(equal, decode_tree(tree), group))
    assert len(tree["traces"]) == len(group)
    assert tree["unique_tokens"] == sum(len(node["token_ids"]) for node in tree["nodes"]) == prefixes(group)
    assert tree["tokens"] == sum(map(len, group))
    for number, node in enumerate(tree["nodes"]):
        assert node["token_ids"]
        assert node["parent"] is None or node["parent"] < number


@settings(deadline=None, max_examples=40)
@given(st.lists(worlds(), min_size=1, max_size=3), BUILDERS)
def test_groups_of_real_sessions_are_rebuilt(group: list[World], strategy: str) -> None:
    made = [trace for world in group for trace in build(world.forest, strategy).traces]
    tree = written(made)
    assert all(map(equal, decode_tree(tree), made))
    assert tree["unique_tokens"] == prefixes(made)


def test_a_long_chain_needs_no_recursion() -> None:
    ids = np.arange(1100, dtype=np.int32)  # more than the interpreter nests calls
    group = [
        Trace("s", n, "main", ids[: n + 1], np.zeros(n + 1, np.bool_), np.zeros(n + 1, np.float32), (n,))
        for n in range(len(ids))
    ]
    tree = written(group)
    assert tree["unique_tokens"] == len(ids)
    assert equal(decode_tree(tree)[-1], group[-1])


def test_another_object_is_refused() -> None:
    with pytest.raises(ValueError, match="not a prefix tree: its schema is None"):
        decode_tree({"nodes": []})
