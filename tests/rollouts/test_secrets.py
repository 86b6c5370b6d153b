# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session's secret is in its harness's environment and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import psutil
import pytest

from nemo_gym_polar.rollouts.redaction import without
from nemo_gym_polar.rollouts.stages import Gauges
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK, ASK_ONCE, Marked, Stand, stand, task

LEAK = 'echo "out $OPENAI_API_KEY"; echo "err $OPENAI_API_KEY" >&2; printf %s "$OPENAI_API_KEY" > key.txt\n'


def secrets_of(bench: Stand) -> set[str]:
    return {run.session.secret for run in bench.service._running.values() if run.session}


def everything_kept(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("backend", ["bubblewrap", "local"])
@pytest.mark.filterwarnings("ignore::nemo_gym_polar.runtimes.local.NoIsolationWarning")
async def test_no_process_list_shows_it(engine: FakeEngine, tmp_path: Path, marked: Marked, backend: str) -> None:
    async with stand(engine, tmp_path) as bench:
        request = task(ASK_ONCE + marked.command, backend=backend, metadata={"agent_timeout": 30})
        running = asyncio.create_task(bench.service.run(request))
        assert await marked.becomes(alive=True)
        (secret,) = secrets_of(bench)
        lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        bench.service.cancel("task")
        await running
    assert any(marked.length in line for line in lines)
    assert not [line for line in lines if secret in line]


@pytest.mark.parametrize("ends", ["exit 0", 'echo "last: $OPENAI_API_KEY" >&2; exit 3'])
async def test_a_harness_that_prints_it(bench: Stand, caplog: pytest.LogCaptureFixture, ends: str) -> None:
    """Logs, results, traces and journals of it, and what the engine read."""
    caplog.set_level(logging.DEBUG)
    seen: set[str] = set()
    bench.watch = lambda gauges: seen.update(secrets_of(bench))
    group = await bench.service.run(task(ASK_ONCE + LEAK + ends, evaluate="cat key.txt; cat key.txt >&2; exit 0"))
    (secret,) = seen
    kept = everything_kept(bench.directory)
    assert {path.suffix for path in kept} >= {".log", ".json", ".jsonl", ".journal"}
    assert [path for path, data in kept.items() if secret.encode() in data] == []
    log = (bench.directory / "sessions" / group.sessions[0].session_id / "harness.log").read_text()
    assert log.splitlines()[:2] == ["out [hidden]", "err [hidden]"]
    assert secret not in group.sessions[0].model_dump_json(exclude={"traces"})
    assert group.sessions[0].metadata["evaluation"]["stdout"] == "[hidden]"
    assert secret not in caplog.text
    tokenizer = bench.engine._tokenizer
    assert tokenizer
    assert not [served for served in bench.engine.served if secret in tokenizer.decode(served.context)]


async def test_a_harness_that_says_it_to_the_model(bench: Stand) -> None:
    """The tokens have it, since the policy read it; what is told of the conversation has not."""
    told = 'ask "my key is $OPENAI_API_KEY" > answer.json\n'
    (session,) = (await bench.service.run(task(ASK + told))).sessions
    trace = bench.directory / "traces" / f"{session.session_id}.jsonl"
    assert "my key is [hidden]" in trace.read_text()
    (entry,) = session.conversations
    assert entry["messages"][1] == {"role": "user", "content": "my key is [hidden]"}


async def test_a_session_cannot_be_spoken_for_with_its_public_name(bench: Stand) -> None:
    """The id is in results and paths, so it opens nothing."""
    name = "id=${OPENAI_BASE_URL%/v1}; OPENAI_API_KEY=${id##*/}\n"
    (session,) = (await bench.service.run(task(name + ASK_ONCE, evaluate="true"))).sessions
    assert session.status is SessionStatus.ERROR
    assert bench.engine.served == []


async def test_the_secret_is_dead_when_the_session_is(bench: Stand) -> None:
    kept: list[tuple[str, str]] = []

    def keep(gauges: Gauges) -> None:
        runs = bench.service._running.values()
        kept.extend((run.session.path, run.session.secret) for run in runs if run.session and not kept)

    bench.watch = keep
    await bench.service.run(task())
    ((path, secret),) = kept
    stolen = f"OPENAI_API_KEY={secret}; OPENAI_BASE_URL=${{OPENAI_BASE_URL%%/s/*}}{path}/v1\n"
    (session,) = (await bench.service.run(task(stolen + ASK_ONCE, task_id="other"))).sessions
    assert session.status is SessionStatus.ERROR
    assert len(bench.engine.served) == 1


def test_whatever_holds_it() -> None:
    value = {"a k": ["k", ("xk", 1, None)], "b": {"k": 2.5}}
    assert without("k", value) == {"a [hidden]": ["[hidden]", ["x[hidden]", 1, None]], "b": {"[hidden]": 2.5}}
    assert without("", value) is value


FETCH = """
fetch() {
  exec 3<>/dev/tcp/127.0.0.1/8399
  printf '%s %s HTTP/1.1\\r\\nHost: polar\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' "$1" "$2" >&3
  head -n 1 <&3; exec 3>&-
}
"""


async def test_the_door_of_a_sandbox_leads_to_the_model_and_to_no_management(bench: Stand) -> None:
    """What runs inside must not read metrics, pause the engine or start sessions."""
    asked = [("GET", "/metrics"), ("GET", "/health"), ("GET", "/sessions"), ("POST", "/sessions"),
             ("POST", "/admin/inference/pause"), ("GET", "/node/reports"), ("GET", "/openapi.json")]  # fmt: skip
    script = FETCH + "".join(f"fetch {method} {path}\n" for method, path in asked)
    (session,) = (await bench.service.run(task(script + ASK_ONCE))).sessions
    log = (bench.directory / "sessions" / session.session_id / "harness.log").read_text()
    codes = [int(line.split()[1]) for line in log.splitlines()]
    assert len(codes) == len(asked)
    assert set(codes) <= {401, 404}
