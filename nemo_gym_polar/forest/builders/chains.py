# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The chains of a forest, and which of them owns a turn that several share."""

from __future__ import annotations

from nemo_gym_polar.forest.builders.plan import Plan, why_not
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Edge, Turn


def plan_chains(store: TurnStore) -> list[Plan]:
    """One plan per chain tip; each trainable turn is owned by the first chain that it lies on, the main one first.

    Then come chains in the order of their beginnings, so that a trace's parent is always an earlier trace.
    """
    chains = {tip.index: store.chain(tip.index) for tip in _tips(store)}
    order = sorted(chains, key=lambda tip: (chains[tip][0].index, tip))
    main = _main(store, chains)
    if main is not None:
        order.remove(main)
        order.insert(0, main)
    return _share_out(chains, order)


def main_turns(store: TurnStore) -> frozenset[int]:
    """The turns of the task's own longest chain, from its first prompt on."""
    chains = {tip.index: store.chain(tip.index) for tip in _tips(store)}
    main = _main(store, chains)
    return frozenset() if main is None else frozenset(turn.index for turn in chains[main])


def _share_out(chains: dict[int, list[Turn]], order: list[int]) -> list[Plan]:
    taken: set[int] = set()
    plans: list[Plan] = []
    for tip in order:
        owned = tuple(turn for turn in chains[tip] if turn.index not in taken and why_not(turn) is None)
        taken.update(turn.index for turn in owned)
        plans.append(Plan(chains[tip][-1], owned))
    return plans


def _tips(store: TurnStore) -> list[Turn]:
    """Trainable turns from which no trainable turn goes on."""
    covered: set[int] = set()
    tips: list[Turn] = []
    for turn in reversed(store.turns):
        if turn.index not in covered and why_not(turn) is None:
            tips.append(turn)
            before = store.previous(turn)
            while before is not None and before.index not in covered:
                covered.add(before.index)
                before = store.previous(before)
    return tips


def _main(store: TurnStore, chains: dict[int, list[Turn]]) -> int | None:
    """The tip of the chain with most sampled tokens among those that begin with the task's first request."""
    if store.main is None:
        return None
    request = store.main.request
    begun = [
        tip
        for tip, chain in chains.items()
        if chain[0].request == request and chain[0].edge in (Edge.ROOT, Edge.RETRY) and store.kind(chain[0]) == "main"
    ]
    return max(begun, key=lambda tip: (sum(len(turn.sampled) for turn in chains[tip]), tip), default=None)
