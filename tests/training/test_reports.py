# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.service import GroupResult
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import SessionStatus
from nemo_gym_polar.training.progress import PlainProgress, SessionMeter
from nemo_gym_polar.training.reports import StepReport, Summary, report_evaluation, report_step, sampled_tokens
from nemo_gym_polar.training.settings import TrainerSettings
from nemo_gym_polar.training.trainer import Trainer
from tests.support.runs import Heard
from tests.support.sessions import make_group, make_session, make_trace


@pytest.fixture(scope="module")
def report(policy_dir: Path) -> StepReport:
    return make_report(policy_dir, 0)


def make_report(policy_dir: Path, seed: int) -> StepReport:
    groups = [GroupResult("a", make_group([0, 1], seed=seed)), GroupResult("b", make_group([1, 1], seed=seed + 1))]
    groups[0].sessions[0].dropped["never_seen"] = 4
    groups[1].sessions[0].status = SessionStatus.TIMEOUT
    trainer = Trainer(policy_dir, TrainerSettings(device="cpu"), seed=0)
    metrics = trainer.step([group.sessions for group in groups])
    return report_step(groups, metrics, rollout_seconds=3.0, push_seconds=0.1)


def test_a_step_counts_every_sampled_token(report: StepReport) -> None:
    assert (report.reward, report.sessions, report.groups, report.zero_variance_groups) == (0.75, 4, 2, 1)
    assert report.trained_tokens == 14
    assert report.untrained == {"never_seen": 4, "zero_advantage": 14}
    assert report.statuses == {"COMPLETED": 3, "TIMEOUT": 1}


def test_scalars_are_all_numbers_by_their_path(report: StepReport) -> None:
    scalars = report.scalars()
    assert scalars["reward"] == 0.75
    assert scalars["untrained/never_seen"] == 4
    assert "values/entropy" in scalars


def test_an_evaluation_says_how_sure_it_is() -> None:
    groups = [GroupResult("a", make_group([0, 1])), GroupResult("b", make_group([1, 1]))]
    evaluation = report_evaluation("before", 0, groups, 2.0)
    assert evaluation.reward == 0.75
    assert evaluation.standard_error == pytest.approx((0.75 * 0.25 / 4) ** 0.5)
    assert evaluation.sampled_tokens == 4 * 7


def test_a_summary_adds_up_and_survives_a_checkpoint(report: StepReport) -> None:
    through, first = Summary("run", 0), Summary("run", 0)
    for summary in (through, first):
        summary.count_evaluation(report_evaluation("before", 0, [GroupResult("a", make_group([0, 1]))], 1.0))
        summary.count_step(report)
    resumed = Summary("elsewhere", 0)
    resumed.restore(json.loads(json.dumps(dataclasses.asdict(first))))
    for summary in (through, resumed):
        summary.count_step(dataclasses.replace(report, step=2))
    assert (through.steps, through.sessions, through.trained_tokens) == (2, 8, 28)
    assert through.dropped_tokens_by_cause == {"evaluation": 14, "never_seen": 8, "zero_advantage": 28}
    assert dataclasses.replace(resumed, directory="run") == through


def test_masked_tokens_count_as_sampled() -> None:
    session = make_session(0, [make_trace([(3, False), (2, True)])], dropped={"partial_run": 5})
    assert sampled_tokens(session) == 7


def test_plain_progress_is_a_line_each(report: StepReport) -> None:
    out = io.StringIO()
    progress = PlainProgress(out)
    progress.say("hello")
    progress.evaluated(report_evaluation("after", 1, [GroupResult("a", make_group([0, 1]))], 1.0))
    progress.stepped(report, 20)
    progress.finished(Summary("runs/x", 0, status="completed", reward_before=0.1))
    lines = out.getvalue().splitlines()
    assert lines[0] == "hello"
    assert lines[1].startswith("held-out reward after: 0.500 ± 0.354")
    assert lines[2].startswith("step 1/20  reward 0.750")
    assert "before 0.100, after not measured" in lines[4]


def test_the_meter_counts_the_sessions_that_have_ended() -> None:
    heard = Heard()
    meter = SessionMeter(heard)
    meter.begin(3)
    for queued, running in ((1, 0), (3, 0), (1, 2), (0, 1), (0, 0)):
        meter.changed({Stage.QUEUED: queued, Stage.RUNNING: running})
    assert heard.batches == [(0, 3), (0, 3), (0, 3), (2, 3), (3, 3)]
