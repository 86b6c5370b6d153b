# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The evaluator's own sandbox: made while the harness runs, with nothing of the harness's but what counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.pool import Usage
from nemo_gym_polar.rollouts.settings import PartialRule
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import EvaluatorSpec, PrepareAction, SessionResult, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, Marked, Stand, kill_sandbox, places, stand, task, until, use_up_its_time


def fresh(
    command: str = ASK_ONCE,
    *,
    evaluate: str = "test -s answer.json",
    prepare: tuple[str, ...] = (),
    eval_prepare: tuple[str, ...] | None = None,
    config: dict[str, Any] | None = None,
    **fields: Any,
) -> TaskRequest:
    request = task(command, **fields)
    eval_steps = None if eval_prepare is None else steps(*eval_prepare)
    runtime = request.runtime.model_copy(update={"prepare": steps(*prepare), "eval_prepare": eval_steps})
    evaluator = EvaluatorSpec(refresh_runtime=True, config={"command": evaluate, **(config or {})}, env={"SEEN": "yes"})
    return request.model_copy(update={"runtime": runtime, "evaluator": evaluator})


def steps(*commands: str) -> tuple[PrepareAction, ...]:
    return tuple(PrepareAction(type="exec", command=command) for command in commands)


async def one(bench: Stand, request: TaskRequest) -> SessionResult:
    (session,) = (await bench.service.run(request)).sessions
    return session


async def test_the_workspace_goes_over_and_nothing_else(bench: Stand) -> None:
    """What the harness left in its home, in /tmp or as a deleted file must count as it would anywhere else."""
    spoil = "rm given; mkdir -p ~/.local; echo evil > ~/.bashrc; echo evil > /tmp/evil; echo mine > mine\n"
    look = (
        'test ! -e given && grep -qx mine mine && test -s answer.json && test -z "$(ls -A ~ /tmp | grep -v :)"'
        ' && test "$SEEN" = yes && test -z "$OPENAI_API_KEY"'
    )
    session = await one(bench, fresh(ASK_ONCE + spoil, evaluate=look, files={"given": "x", "other": "y"}))
    assert (session.status, session.reward, session.error) == (SessionStatus.COMPLETED, 1.0, None)
    assert session.metadata["evaluation"]["carried"] == "workspace"
    assert bench.service.pools.prewarm.usage == Usage(2, 0, 0)


async def test_the_evaluators_sandbox_has_no_way_to_the_gateway(bench: Stand) -> None:
    dial = "! (exec 3<>/dev/tcp/127.0.0.1/8399) 2>/dev/null"
    assert (await one(bench, fresh(evaluate=dial))).reward == 1.0
    assert (await one(bench, task(evaluate=dial))).reward == 0.0  # the harness's own has


async def test_eval_prepare_makes_only_the_evaluators_sandbox(bench: Stand) -> None:
    look = "test -e /tmp/graders && test ! -e ~/tools && grep -qx absent seen"
    see = "test -e /tmp/graders && echo present > seen || echo absent > seen\n"
    request = fresh(ASK_ONCE + see, evaluate=look, prepare=("touch ~/tools",), eval_prepare=("touch /tmp/graders",))
    assert (await one(bench, request)).reward == 1.0


async def test_without_eval_prepare_both_are_prepared_alike(bench: Stand) -> None:
    look = "test -e ~/tools && grep -qx there seen"
    request = fresh(ASK_ONCE + "test -e ~/tools && echo there > seen", evaluate=look, prepare=("touch ~/tools",))
    assert (await one(bench, request)).reward == 1.0


REPOSITORY = (
    "git init -q . && git config user.name a && git config user.email a@b && echo one > one && echo two > two"
    " && echo junk > .gitignore && git add -A && git commit -qm start"
)


async def test_only_a_patch_goes_over(bench: Stand) -> None:
    work = "echo more >> one; rm two; printf '\\0\\1' > binary; echo x > junk; git add -A; git commit -qm mine\n"
    work += "git config core.pager 'echo evil'; echo exit 1 > .git/hooks/pre-commit\n"
    look = (
        "grep -qx more one && test ! -e two && test $(wc -c < binary) = 2 && test ! -e junk"
        " && test $(git log --oneline | wc -l) = 1 && ! grep -q evil .git/config"
    )
    request = fresh(ASK_ONCE + work, evaluate=look, prepare=(REPOSITORY,), config={"carry": "patch"})
    session = await one(bench, request)
    assert (session.error, session.reward) == (None, 1.0)
    assert session.metadata["evaluation"]["patch_bytes"] > 0


async def test_an_empty_patch(bench: Stand) -> None:
    quiet = ASK_ONCE.replace("> answer.json", "> ~/answer")
    request = fresh(quiet, evaluate="git diff --quiet", prepare=(REPOSITORY,), config={"carry": "patch"})
    session = await one(bench, request)
    assert (session.error, session.reward) == (None, 1.0)
    assert session.metadata["evaluation"]["patch_bytes"] == 0


async def test_no_repository_to_take_a_patch_from(bench: Stand) -> None:
    session = await one(bench, fresh(ASK_ONCE + "rm -rf .git", prepare=(REPOSITORY,), config={"carry": "patch"}))
    assert session.status is SessionStatus.ERROR
    assert "patch in /workspace: fatal: not a git repository" in str(session.error)
    assert session.dropped["partial_run"] > 0


async def test_a_dead_harness_is_scored_in_the_fresh_sandbox_too(bench: Stand, marked: Marked) -> None:
    running = asyncio.create_task(one(bench, fresh(ASK_ONCE + marked.command)))
    assert await marked.becomes(alive=True)
    use_up_its_time(bench)
    session = await running
    assert (session.status, session.reward) == (SessionStatus.TIMEOUT, 1.0)


async def test_it_is_made_while_the_harness_runs_and_takes_no_running_place(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, run_workers=1, prewarm_workers=1) as bench:
        seen: list[int] = []
        bench.watch = lambda gauges: seen.append(bench.service.pools.run.used)
        session = await one(bench, fresh(ASK_ONCE + "sleep 1", eval_prepare=("sleep 0.5",)))
    timing = session.timing
    assert timing["evaluator_prewarm"] >= 0.5
    assert timing["evaluator_wait"] < timing["evaluator_prewarm"]
    assert {"evaluator_prewarm_queue", "evaluate", "build"} <= timing.keys()
    assert max(seen) == 1


async def test_prewarming_is_bounded(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, run_workers=4, prewarm_workers=1) as bench:
        most: list[int] = []
        bench.watch = lambda gauges: most.append(bench.service.pools.prewarm.used)
        async with places(bench.service.pools.prewarm, 1):
            running = asyncio.create_task(bench.service.run(fresh(eval_prepare=("true",), num_samples=3)))
            await until(lambda: bench.service.pools.prewarm.waiting == 3)
        group = await running
        assert {session.reward for session in group.sessions} == {1.0}
        assert max(most) == 1
        assert bench.service.pools.prewarm.usage == Usage(1, 0, 0)
    assert all(session.timing["evaluator_prewarm_queue"] > 0 for session in group.sessions)


async def test_one_that_died_while_it_waited_is_made_again(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, postrun_workers=1) as bench:
        async with places(bench.service.pools.postrun, 1):
            running = asyncio.create_task(one(bench, fresh()))
            await until(lambda: bench.service.pools.gauges[Stage.FINISHED] == 1)
            (run,) = bench.service._running.values()
            assert run.prewarm and run.prewarm.task
            kill_sandbox(await run.prewarm.task)
        session = await running
    assert (session.reward, session.metadata["evaluator_restarts"]) == (1.0, 1)


async def test_one_that_cannot_be_made_leaves_the_session_without_a_score(bench: Stand) -> None:
    session = await one(bench, fresh(eval_prepare=("echo broken >&2; exit 1",)))
    assert session.status is SessionStatus.ERROR
    assert "runtime.eval_prepare[0].command=" in str(session.error)
    assert "broken" in str(session.error)
    assert session.traces[0].reward == 0.0
    assert session.dropped["partial_run"] == len(bench.engine.served[0].sampled)


@pytest.mark.parametrize(("rule", "trained"), [(PartialRule.MASK, False), (PartialRule.ZERO, True)])
async def test_a_late_evaluation_keeps_its_traces(
    engine: FakeEngine, tmp_path: Path, rule: PartialRule, trained: bool
) -> None:
    async with stand(engine, tmp_path, unscored_runs=rule) as bench:
        session = await one(bench, fresh(evaluate="sleep 60", config={"timeout_seconds": 0.3}))
    assert (session.status, session.reward) == (SessionStatus.TIMEOUT, 0.0)
    assert bool(session.traces[0].trained_tokens) is trained
    assert session.traces[0].reward == 0.0


async def test_a_task_that_scores_by_the_status_alone_makes_none(bench: Stand) -> None:
    request = task().model_copy(update={"evaluator": EvaluatorSpec(strategy="session_completed", refresh_runtime=True)})
    session = await one(bench, request)
    assert session.reward == 1.0
    assert "evaluator_prewarm" not in session.timing


async def test_graders_where_the_workspace_goes_are_refused(bench: Stand) -> None:
    upload = PrepareAction(type="upload_file", source="x", target="tests/x")
    request = fresh(eval_prepare=())
    runtime = request.runtime.model_copy(update={"eval_prepare": (upload,)})
    (bench.directory / "assets").mkdir()
    (bench.directory / "assets" / "x").write_text("x")
    bench.service.settings = bench.service.settings.model_copy(update={"assets": bench.directory / "assets"})
    with pytest.raises(RolloutError, match=r"eval_prepare\[0\]\.target='tests/x' lies in the workspace"):
        await bench.service.run(request.model_copy(update={"runtime": runtime}))
