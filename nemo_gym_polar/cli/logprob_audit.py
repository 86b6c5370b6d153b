# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Ask an engine how likely the recorded tokens are, and compare."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from nemo_gym_polar.engines.base import ContextOverflowError, EngineError, ScoringEngine
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.differences import Differences
from nemo_gym_polar.forest.store import TurnStore

_ALL_KINDS = {"sub_agent": "train", "compaction": "train", "side_call": "train"}


class ScoringKind(StrEnum):
    """The kinds of engine that can be asked for the log-probabilities of a prompt."""

    EMBEDDED = "embedded"
    VLLM = "vllm"


_ENGINES = {ScoringKind.EMBEDDED: VLLM, ScoringKind.VLLM: VLLM}


def scoring_engine(kind: ScoringKind, url: str, model: str, api_key: str | None) -> ScoringEngine:
    return _ENGINES[kind](Replicas([url], api_key=api_key), model=model)


async def compare(engine: ScoringEngine, store: TurnStore, *, any_version: bool) -> Differences:
    """The differences of all chains of a session. Raises `EngineError`, also if the weights change meanwhile."""
    version = await engine.weight_version()
    differences = Differences(version, any_version)
    for trace in build(store, "prefix_merging", _ALL_KINDS).traces:
        if differences.wants(store, trace):
            try:
                differences.add(store, trace, await engine.score(trace.token_ids))
            except ContextOverflowError:
                differences.too_long(trace)
    if (now := await engine.weight_version()) != version:
        raise EngineError(f"The engine's weights changed from {version} to {now} during the audit; ask again.")
    return differences


def described(differences: Differences) -> dict[str, Any]:
    return {
        "engine_weights": differences.version,
        "edges": [
            {
                "edge": str(spread.edge),
                "tokens": spread.count,
                "mean": spread.mean,
                "p50": spread.p50,
                "p99": spread.p99,
                "max": spread.max,
                "worst": f"turn {spread.worst}, token {spread.at}",
            }
            for spread in differences.spreads()
        ],
        "left_out": dict(sorted(differences.left_out.items())),
    }
