# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What makes a sandbox ready: uploads and commands, in order, and nothing from elsewhere on the machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.task import PrepareAction, SessionResult, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, stand, task


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="runtime=local")
        yield


@pytest.fixture(params=["bubblewrap", "local"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """A script, and a directory with a link and a file in a directory."""
    made = tmp_path / "assets"
    (made / "suite" / "deep").mkdir(parents=True)
    (made / "suite" / "deep" / "data").write_text("data\n")
    (made / "suite" / "link").symlink_to("deep/data")
    (made / "tool").write_text("#!/bin/sh\necho tool\n")
    (made / "tool").chmod(0o755)
    (tmp_path / "private").write_text("private")
    return made


def step(kind: str, **fields: Any) -> PrepareAction:
    return PrepareAction(type=kind, **fields)  # type: ignore[arg-type] # wrong ones are tested elsewhere


def prepared(*steps: PrepareAction, backend: str = "bubblewrap", evaluate: str = "true", **spec: Any) -> TaskRequest:
    request = task(ASK_ONCE, evaluate=evaluate, backend=backend)
    return request.model_copy(update={"runtime": request.runtime.model_copy(update={"prepare": steps, **spec})})


async def run(engine: FakeEngine, directory: Path, request: TaskRequest, **settings: Any) -> SessionResult:
    async with stand(engine, directory / "run", **settings) as bench:
        (session,) = (await bench.service.run(request)).sessions
        return session


async def test_steps_in_order(engine: FakeEngine, tmp_path: Path, assets: Path, backend: str) -> None:
    request = prepared(
        step("upload_dir", source="suite", target="tests"),
        step("upload_file", source=str(assets / "tool"), target="bin/tool"),
        step("exec", command="cat ../tests/link; ./tool; echo $SAID; pwd", cwd="bin", env={"SAID": "said"}),
        step("exec", command="bin/tool > made"),
        backend=backend,
        evaluate="test -L tests/link && grep -qx data tests/deep/data && grep -qx tool made && echo $GIVEN",
        env={"GIVEN": "given"},
    )
    session = await run(engine, tmp_path, request, assets=assets)
    assert (session.status, session.reward, session.error) == (SessionStatus.COMPLETED, 1.0, None)
    assert session.metadata["evaluation"]["stdout"] == "given\n"
    assert session.timing["prepare"] > 0


async def test_a_command_is_tried_again(engine: FakeEngine, tmp_path: Path, backend: str) -> None:
    flaky = step("exec", command="echo x >> tries; test $(wc -l < tries) = 3", max_attempts=3)
    session = await run(engine, tmp_path, prepared(flaky, backend=backend, evaluate="test $(wc -l < tries) = 3"))
    assert session.reward == 1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"command": "echo why >&2; exit 3", "max_attempts": 2},
            "prepare.1..command='echo why.*failed: exit code 3: why",
        ),
        ({"command": "true", "cwd": "not/there"}, "No such file"),
        ({"command": "kill -9 $$"}, "exit code -9"),
    ],
)
async def test_a_command_that_fails_ends_the_session(
    engine: FakeEngine, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    session = await run(engine, tmp_path, prepared(step("exec", command="true"), step("exec", **fields)))
    assert session.status is SessionStatus.ERROR
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(session.error)
    assert engine.served == []  # the harness was not started


async def test_the_deadline_holds_while_a_sandbox_is_prepared(engine: FakeEngine, tmp_path: Path) -> None:
    request = prepared(step("exec", command="sleep 60")).model_copy(update={"timeout_seconds": 0.7})
    session = await run(engine, tmp_path, request)
    assert (session.status, session.error) == (SessionStatus.TIMEOUT, "the session's 1 s ended in init")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (step("upload_file", source="../private", target="x"), "source='../private' is not in the service's assets"),
        (step("upload_file", source="/etc/passwd", target="x"), "source='/etc/passwd' is not in the service's assets"),
        (step("upload_file", source="out", target="x"), "source='out' is not in the service's assets"),
        (step("upload_file", source="suite", target="x"), "no such file"),
        (step("upload_dir", source="tool", target="x"), "no such directory"),
        (step("upload_dir", source="none", target="x"), "no such directory"),
    ],
)
async def test_an_upload_from_elsewhere_is_refused_at_once(
    engine: FakeEngine, tmp_path: Path, assets: Path, action: PrepareAction, message: str
) -> None:
    (assets / "out").symlink_to(tmp_path / "private")
    with pytest.raises(RolloutError, match=message):
        await run(engine, tmp_path, prepared(action), assets=assets)


async def test_without_assets_nothing_is_uploaded(engine: FakeEngine, tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match=r"prepare\[0\]\.source='x': this service uploads nothing.*assets"):
        await run(engine, tmp_path, prepared(step("upload_file", source="x", target="y")))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"image": "python:3.12"}, "runtime.image="),
        ({"allow_internet": True}, "runtime.allow_internet=true"),
        ({"gpus": 1}, "runtime.gpus=1"),
        ({"import_path": "a:B"}, "runtime.import_path='a:B'"),
        ({"kwargs": {"volumes": []}}, "runtime.kwargs="),
    ],
)
async def test_what_the_backend_cannot_give_fails_the_task(
    engine: FakeEngine, tmp_path: Path, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(RolloutError, match=message):
        await run(engine, tmp_path, prepared(**spec))


async def test_the_harness_works_where_the_task_says(engine: FakeEngine, tmp_path: Path) -> None:
    session = await run(engine, tmp_path, prepared(workdir="/testbed", evaluate="test -s /testbed/answer.json"))
    assert session.reward == 1.0
