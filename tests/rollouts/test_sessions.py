# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One session, well-behaved or not: whatever the harness does, the result is clean and no process is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.rollouts.settings import PartialRule
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK, ASK_ONCE, Marked, Stand, stand, task, use_up_its_time


@pytest.fixture(autouse=True)
def nothing_is_left(bench: Stand) -> Iterator[None]:
    yield
    assert len(bench.gateway) == 0
    assert not any(bench.service.pools.gauges.values())


async def one(bench: Stand, request: TaskRequest) -> SessionResult:
    (session,) = (await bench.service.run(request)).sessions
    return session


async def test_a_session_from_start_to_end(bench: Stand) -> None:
    session = await one(
        bench, task(files={"in.txt": "given"}, evaluate="grep -q given in.txt && grep -q Done answer.json")
    )
    assert (session.status, session.reward, session.error) == (SessionStatus.COMPLETED, 1.0, None)
    (trace,) = session.traces
    (served,) = bench.engine.served
    assert trace.token_ids.tolist() == served.context + served.sampled
    assert trace.loss_mask.sum() == len(served.sampled)
    assert trace.reward == 1.0
    assert session.timing.keys() == {
        "queued",
        "init",
        "ready",
        "running",
        "finished",
        "postrun",
        "sandbox_start",
        "prepare",
        "build",
        "evaluate",
    }
    assert session.metadata["turns"] == 1
    assert session.metadata["evaluation"]["exit_code"] == 0


async def test_what_is_written(bench: Stand) -> None:
    session = await one(bench, task(ASK_ONCE + "echo said", metadata={"step": 3}))
    result = json.loads((bench.directory / "sessions" / session.session_id / "result.json").read_text())
    assert (result["status"], result["reward"], result["metadata"]["step"]) == ("COMPLETED", 1.0, 3)
    assert result["traces"][0]["trained_tokens"] == session.traces[0].trained_tokens
    log = bench.directory / "sessions" / session.session_id / "harness.log"
    assert log.read_text() == "said\n"
    (line,) = (bench.directory / "traces" / f"{session.session_id}.jsonl").read_text().splitlines()
    trace = json.loads(line)
    assert trace["token_ids"] == session.traces[0].token_ids.tolist()
    assert trace["loss_mask"] == session.traces[0].loss_mask.tolist()
    assert len(trace["logprobs"]) == len(trace["token_ids"])
    assert (trace["group"], trace["edge"], trace["digest"]) == (
        session.task_id,
        "root",
        trace_digest(session.traces[0]),
    )
    (journal,) = bench.journals
    assert recover(journal).closed == {
        "harness": {"exit_code": 0, "killed_for": "", "seconds": pytest.approx(1, abs=9)}
    }


async def test_the_secret_is_written_nowhere(bench: Stand) -> None:
    await one(bench, task(ASK_ONCE + 'echo "key $OPENAI_API_KEY" > key.txt; cat key.txt', evaluate="cat key.txt"))
    kept = [path for path in bench.directory.rglob("*") if path.is_file() and path.name != "harness.log"]
    assert kept
    assert not [path for path in kept if b"polar-" in path.read_bytes() and path.suffix == ".journal"]


async def test_never_calls_the_model(bench: Stand) -> None:
    session = await one(bench, task("echo I would rather not; exit 0", evaluate="true"))
    assert session.status is SessionStatus.ERROR
    assert session.error == "the harness never got an answer from the model (exit code 0: I would rather not)"
    assert (session.traces, session.reward) == ([], 1.0)


async def test_crashes_after_a_call(bench: Stand) -> None:
    session = await one(bench, task(ASK_ONCE + "kill -SEGV $$"))
    assert session.status is SessionStatus.ERROR
    assert "exit code -11" in str(session.error)
    assert session.reward == 1.0  # what it did was still scored
    assert session.traces[0].trained_tokens == 0
    assert session.dropped == {"partial_run": len(bench.engine.served[0].sampled)}


async def test_hangs(bench: Stand, marked: Marked) -> None:
    session = await one(bench, task(ASK_ONCE + marked.command, metadata={"agent_timeout": 4.0}))
    assert session.status is SessionStatus.TIMEOUT
    assert "stopped after" in str(session.error)
    assert session.reward == 1.0
    assert session.traces[0].trained_tokens == len(bench.engine.served[0].sampled)
    assert not marked.alive()


async def test_hangs_in_a_model_call(bench: Stand) -> None:
    bench.engine.faults.append("hang")
    session = await one(bench, task(metadata={"agent_timeout": 0.7}))
    assert session.status is SessionStatus.TIMEOUT
    assert bench.engine.running == 0


async def test_the_deadline_of_the_task_ends_the_harness_too(bench: Stand, marked: Marked) -> None:
    session = await one(bench, task(ASK_ONCE + marked.command, timeout_seconds=6.0))
    assert session.status is SessionStatus.TIMEOUT
    assert session.reward == 1.0  # scoring has its own grace
    assert not marked.alive()


async def test_daemons_die_before_scoring(bench: Stand, marked: Marked) -> None:
    daemon = f"(setsid nohup {marked.command} >/dev/null 2>&1 &) & sleep 0.1\n"
    session = await one(bench, task(ASK_ONCE + daemon, evaluate="! ls /proc/*/exe -l 2>/dev/null | grep -q sleep"))
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
    assert not marked.alive()


async def test_writes_gigabytes(bench: Stand) -> None:
    fill = "cat /dev/zero > big; cat /dev/zero > ~/big; cat /dev/zero > /tmp/big\n"
    small = {"workspace_mb": 8, "scratch_mb": 8}
    session = await one(bench, task(fill + "rm big\n" + ASK_ONCE, runtime=small))
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)


async def test_prints_gigabytes(bench: Stand) -> None:
    session = await one(bench, task(ASK_ONCE + "yes", runtime={"output_mb": 8, "log_mb": 1}))
    assert session.status is SessionStatus.ERROR
    assert "too much of «output»" in str(session.error)
    log = bench.directory / "sessions" / session.session_id / "harness.log"
    assert log.stat().st_size < (1 << 20) + 200


@pytest.mark.parametrize(
    "body", ["{", "", "[]", "null", '{"messages": 3}', '{"messages": [{}]}', "\\xff\\xfe", "x" * 100]
)
async def test_sends_broken_bodies(bench: Stand, body: str) -> None:
    session = await one(bench, task(ASK + f"post '{body}' | head -n 1; false"))
    assert session.status is SessionStatus.ERROR
    assert "never got an answer" in str(session.error)
    assert (bench.directory / "sessions" / session.session_id / "harness.log").read_text().startswith("HTTP/1.1 4")


async def test_an_engine_that_dies_is_not_the_end(bench: Stand) -> None:
    bench.engine.faults.append("die")
    session = await one(bench, task(ASK + 'ask one; ask "$POLAR_INSTRUCTION" > answer.json'))
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
    assert session.metadata["turns"] >= 1


@pytest.mark.parametrize("fault", ["no_ids", "nan"])
async def test_an_engine_without_tokens_gives_no_traces(bench: Stand, fault: str) -> None:
    bench.engine.faults.append(fault)  # type: ignore[arg-type] # a literal from the parameters
    session = await one(bench, task())
    assert session.status is SessionStatus.ERROR
    assert session.traces == []


async def test_a_sandbox_that_dies_under_the_harness(bench: Stand) -> None:
    limits = {"memory_mb": 64}
    eat = ASK_ONCE + "kill -9 -1; kill -9 1; python3 -c 'x = bytearray(10**9)' || exit 3\n"
    session = await one(bench, task(eat, runtime=limits))
    assert session.status is SessionStatus.ERROR
    assert session.traces[0].trained_tokens == 0


async def test_an_evaluator_without_a_verdict(bench: Stand) -> None:
    request = task(evaluate="sleep 60").model_copy(update={"evaluator": evaluator(timeout_seconds=0.3)})
    session = await one(bench, request)
    assert session.status is SessionStatus.TIMEOUT
    assert "took longer than" in str(session.error)
    assert session.traces[0].trained_tokens == 0
    assert session.dropped["partial_run"] == len(bench.engine.served[0].sampled)


def evaluator(**config: object) -> object:
    from nemo_gym_polar.rollouts.task import EvaluatorSpec

    return EvaluatorSpec(config={"command": "sleep 60", **config})


@pytest.mark.parametrize(
    ("rule", "reward", "trained"),
    [(PartialRule.TRAIN, 1.0, True), (PartialRule.ZERO, 0.0, True), (PartialRule.MASK, 1.0, False)],
)
async def test_rules_for_partial_runs(
    engine: FakeEngine, tmp_path: Path, marked: Marked, rule: PartialRule, reward: float, trained: bool
) -> None:
    async with stand(engine, tmp_path / "own", timeout_runs=rule) as own:
        running = asyncio.create_task(one(own, task(ASK_ONCE + marked.command)))
        assert await marked.becomes(alive=True)
        use_up_its_time(own)
        session = await running
    assert (session.status, session.reward) == (SessionStatus.TIMEOUT, reward)
    assert session.traces[0].reward == reward
    assert bool(session.traces[0].trained_tokens) is trained


async def test_a_budget_that_runs_out_is_a_time_out(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path / "own", max_turns=2) as own:
        session = await one(own, task(ASK + "for i in 1 2 3; do ask $i > answer.json; done; grep -q Done answer.json"))
    assert session.status is SessionStatus.TIMEOUT
    assert session.error == "the session used up its 2 turns"
    assert session.metadata["turns"] == 2
    assert sum(trace.trained_tokens for trace in session.traces) > 0


async def test_local_runtime(bench: Stand, marked: Marked) -> None:
    daemon = f"setsid {marked.command} & sleep 0.1\n"
    with pytest.warns(UserWarning, match="isolates nothing"):
        session = await one(bench, task(ASK_ONCE + daemon, backend="local"))
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
    assert not marked.alive()
