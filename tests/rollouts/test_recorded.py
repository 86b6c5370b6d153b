# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A recorded session is scored as its rollout was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.recorded import read_session
from nemo_gym_polar.rollouts.scoring import MASKED
from nemo_gym_polar.rollouts.settings import PartialRule
from nemo_gym_polar.rollouts.task import SessionResult, TaskRequest
from tests.support.journals import record_session, write_outcome
from tests.support.rollouts import ASK_ONCE, Stand, task


async def one(bench: Stand, request: TaskRequest) -> SessionResult:
    (session,) = (await bench.service.run(request)).sessions
    return session


async def test_a_rollout_comes_back_from_disk(bench: Stand) -> None:
    ran = await one(bench, task(ASK_ONCE))
    (journal,) = bench.journals
    session = read_session(journal)
    assert session.about == {"task_id": ran.task_id, "sample": 0, "status": "COMPLETED"}
    assert session.reward == ran.reward == 1.0
    (trace,) = session.build("prefix_merging", {}).traces
    assert (trace.reward, trace.group) == (1.0, ran.task_id)
    assert np.array_equal(trace.token_ids, ran.traces[0].token_ids)
    assert np.array_equal(trace.loss_mask, ran.traces[0].loss_mask)


async def test_what_the_rollout_masked_stays_masked(bench: Stand) -> None:
    assert bench.service.settings.failed_runs is PartialRule.MASK
    ran = await one(bench, task(ASK_ONCE + "exit 3"))
    assert ran.dropped[MASKED] > 0
    made = read_session(bench.journals[0]).build("prefix_merging", {})
    assert made.trained_tokens == 0
    assert dict(made.dropped) == ran.dropped


async def test_traces_keep_their_own_rewards_in_the_same_build_only(tmp_path: Path) -> None:
    journal = await record_session(tmp_path / "journals", "s1", turns=2)
    write_outcome(tmp_path, "s1", reward=0.5, traces=[{"kind": "main", "tokens": 26, "reward": 0.9}])
    session = read_session(journal)
    assert [trace.reward for trace in session.build("prefix_merging", {}).traces] == [0.9]
    assert [trace.reward for trace in session.build("per_request", {}).traces] == [0.5, 0.5]


async def test_without_a_result_nothing_is_known(tmp_path: Path) -> None:
    session = read_session(await record_session(tmp_path / "journals", "s1", turns=1))
    assert (session.status, session.reward, session.task_id) == (None, None, None)
    assert [trace.reward for trace in session.build("prefix_merging", {}).traces] == [None]


@pytest.mark.parametrize("text", ["{", "[]"])
async def test_a_result_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    journal = await record_session(tmp_path / "journals", "s1", turns=1)
    write_outcome(tmp_path, "s1").write_text(text)
    with pytest.raises(RolloutError, match=r"result\.json .*remove it"):
        read_session(journal)
