# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One trace per chain: a conversation that only ever grows is one sequence, however many calls it took.

Where a conversation branches, breaks, or starts a sub-agent, another chain begins; nothing after a break is lost. What
chains share is in the loss of one of them only, and context in the others.
"""

from __future__ import annotations

from collections import Counter

from nemo_gym_polar.forest.builders.base import Build, Options
from nemo_gym_polar.forest.builders.chains import main_turns, plan_chains
from nemo_gym_polar.forest.builders.plan import realise
from nemo_gym_polar.forest.store import TurnStore


def prefix_merging(store: TurnStore, options: Options) -> Build:
    plans = plan_chains(store)
    dropped: Counter[str] = Counter()
    if options.main_chain:
        main = main_turns(store)
        others = [plan for plan in plans if plan.tip.index not in main]
        plans = [plan for plan in plans if plan.tip.index in main]
        if others:
            dropped["main_chain"] += sum(plan.sampled_tokens for plan in others)
    return realise(store, plans, options, dropped)
