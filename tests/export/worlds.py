# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Random sessions of a simulated harness, and what builders make of them."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.forest.harness import Harness
from tests.forest.world import Template, World

BUILDERS = st.sampled_from(["prefix_merging", "per_request"])
RULES = st.sampled_from(["train", "mask", "drop"])
CONFIGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={"side_call": RULES, "sub_agent": RULES, "main_chain": st.booleans(), "max_tokens": st.integers(1, 400)},
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    template = Template(draw(st.booleans()), draw(st.booleans()))
    world = World(draw(st.sampled_from(["chat", "tokens"])), template)
    Harness(world, Random(draw(st.integers(0, 2**32)))).run(draw(st.integers(1, 20)))
    return world
