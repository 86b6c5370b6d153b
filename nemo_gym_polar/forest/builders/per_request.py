# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One trace per model call: always exact, never short, and heavy, since every trace repeats its whole context."""

from __future__ import annotations

from collections import Counter

from nemo_gym_polar.forest.builders.base import Build, Options
from nemo_gym_polar.forest.builders.chains import main_turns
from nemo_gym_polar.forest.builders.plan import Plan, realise, why_not
from nemo_gym_polar.forest.store import TurnStore


def per_request(store: TurnStore, options: Options) -> Build:
    plans = [Plan(turn, (turn,)) for turn in store.turns if why_not(turn) is None]
    dropped: Counter[str] = Counter()
    if options.main_chain:
        main = main_turns(store)
        plans, others = _split(plans, main)
        if others:
            dropped["main_chain"] += sum(plan.sampled_tokens for plan in others)
    return realise(store, plans, options, dropped)


def _split(plans: list[Plan], main: frozenset[int]) -> tuple[list[Plan], list[Plan]]:
    kept = [plan for plan in plans if plan.tip.index in main]
    return kept, [plan for plan in plans if plan.tip.index not in main]
