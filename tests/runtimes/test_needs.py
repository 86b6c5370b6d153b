# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a task asks of its sandbox is given or refused, never quietly left out."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from nemo_gym_polar.runtimes import cpus
from nemo_gym_polar.runtimes.base import Needs, Runtime, SandboxError
from nemo_gym_polar.runtimes.registry import check_runtime, make_runtime, read_limits

pytestmark = pytest.mark.filterwarnings("ignore::nemo_gym_polar.runtimes.local.NoIsolationWarning")
Make = Callable[..., Awaitable[Runtime]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[Runtime] = []

    async def start(backend: str, **needs: Any) -> Runtime:
        made.append(make_runtime(backend, None, needs=Needs(**needs)))
        await made[-1].start()
        return made[-1]

    yield start
    for runtime in made:
        await runtime.stop()


async def said(runtime: Runtime, command: str, **options: Any) -> str:
    ended = await runtime.run(["bash", "-c", command], timeout=20, **options)
    return (ended.stdout + ended.stderr).decode().strip()


async def test_the_tasks_environment_is_everyones_and_a_commands_own_goes_first(make: Make, backend: str) -> None:
    runtime = await make(backend, env={"ONE": "task", "TWO": "task"})
    assert await said(runtime, "echo $ONE $TWO", env={"TWO": "own"}) == "task own"


@pytest.mark.parametrize("workdir", ["/testbed", "/opt/repo/deep", "/root"])
async def test_the_workspace_is_where_the_task_wants_it(make: Make, workdir: str) -> None:
    runtime = await make("bubblewrap", workdir=workdir)
    assert runtime.workspace == workdir
    assert await said(runtime, "pwd; echo x > file && cat $PWD/file; stat -c %U .") == f"{workdir}\nx\nagent"


async def test_memory_and_storage_are_bounded(make: Make) -> None:
    runtime = await make("bubblewrap", memory_mb=100, storage_mb=3)
    assert "MemoryError" in await said(runtime, "python3 -c 'bytearray(200 << 20)'")
    assert await said(runtime, "cat /dev/zero > big 2>/dev/null; wc -c < big") == str(3 << 20)


async def test_processors_by_affinity(make: Make, backend: str) -> None:
    assert await said(await make(backend, cpus=1), "nproc") == "1"
    assert await said(await make(backend, cpus=4096), "nproc") == str(len(os.sched_getaffinity(0)))


def test_processors_are_taken_in_turn() -> None:
    mine = os.sched_getaffinity(0)
    assert {one for _ in mine for one in cpus.choose(1)} == mine
    assert len(cpus.choose(0.5)) == min(1, len(mine) - 1)


@pytest.mark.parametrize(
    ("backend", "needs"),
    [
        ("bubblewrap", {"image": "python:3.12"}),
        ("bubblewrap", {"network": "host"}),
        ("bubblewrap", {"allow_internet": True}),
        ("bubblewrap", {"gpus": 1}),
        *(("bubblewrap", {"workdir": path}) for path in ("work", "/", "/usr/x", "/a/../etc", "/opt", "/opt/polar/x")),
        ("local", {"image": "python:3.12"}),
        ("local", {"network": "none"}),
        ("local", {"allow_internet": False}),
        ("local", {"gpus": 2}),
        ("local", {"storage_mb": 10}),
        ("local", {"workdir": "/testbed"}),
    ],
)
def test_what_a_backend_cannot_give_is_refused_by_name(backend: str, needs: dict[str, Any]) -> None:
    (field,) = needs
    with pytest.raises(SandboxError, match=rf"^runtime\.{field}=.*(drop it|give an absolute path)"):
        check_runtime(backend, {}, Needs(**needs))
    with pytest.raises(SandboxError):
        make_runtime(backend, None, needs=Needs(**needs))


def test_what_is_given_anyway_is_no_trouble() -> None:
    check_runtime("bubblewrap", {}, Needs(network="none", allow_internet=False, gpus=0))
    check_runtime("local", {}, Needs(network="host", allow_internet=True, gpus=0))


@pytest.mark.parametrize(("field", "setting"), [("memory_mb", "memory_mb"), ("storage_mb", "workspace_mb")])
def test_a_limit_said_twice_is_refused(field: str, setting: str) -> None:
    with pytest.raises(SandboxError, match=f"runtime.settings.{setting}=1.*runtime.{field} says it too"):
        read_limits({setting: 1}, Needs(**dict[str, Any]({field: 2})))


async def test_a_command_starts_where_it_is_told(make: Make, backend: str) -> None:
    runtime = await make(backend)
    await said(runtime, "mkdir deep")
    assert await said(runtime, "pwd", cwd=f"{runtime.workspace}/deep") == f"{runtime.workspace}/deep"
    with pytest.raises(SandboxError, match="No such file"):
        await said(runtime, "pwd", cwd="/not/there")
    assert await said(runtime, "pwd") == runtime.workspace


async def test_a_workspace_moves_to_another_sandbox(make: Make, backend: str) -> None:
    one, two = await make(backend), await make(backend)
    make_it = (
        "mkdir -p a/b && echo x > a/b/run && chmod 755 a/b/run && ln -s a/b/run link && head -c 3M /dev/zero > big"
    )
    await said(one, make_it)
    await two.write(f"{two.workspace}/stale", b"")
    with tempfile.TemporaryFile() as archive:
        await one.save(one.workspace, archive, timeout=20)
        await two.restore(archive, two.workspace, clean=True, timeout=20)
    look = "find . | sort; cat link; stat -c %a a/b/run; wc -c < big; ls -A ~"
    assert await said(two, look) == ".\n./a\n./a/b\n./a/b/run\n./big\n./link\nx\n755\n3145728"


async def test_a_workspace_that_this_machine_has_no_room_for_is_an_error(make: Make, backend: str) -> None:
    runtime = await make(backend)
    await said(runtime, "head -c 3M /dev/zero > big")
    with (
        os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0) as archive,
        pytest.raises(SandboxError, match=r"can't be kept on this machine: .*No space left"),
    ):
        await runtime.save(runtime.workspace, archive, timeout=60)
    assert await said(runtime, "echo well") == "well"


async def test_a_workspace_that_is_too_large_is_an_error() -> None:
    runtime = make_runtime("bubblewrap", None, settings={"output_mb": 1})
    await runtime.start()
    try:
        await said(runtime, "head -c 2M /dev/zero > big")
        with pytest.raises(SandboxError, match=r"larger than 1 MiB: raise runtime.settings.output_mb"):
            await runtime.save("/workspace", io.BytesIO(), timeout=20)
        with pytest.raises(SandboxError, match="can't be packed"):
            await runtime.save("/nowhere", io.BytesIO(), timeout=20)
    finally:
        await runtime.stop()


@pytest.mark.parametrize("left", ["ln -s /dev/null it", "ln -s /tmp/elsewhere it", "mkfifo it", "echo old > it"])
async def test_what_is_written_is_there_whatever_lay_in_its_place(make: Make, backend: str, left: str) -> None:
    """An evaluator's test file must not vanish in a link to /dev/null."""
    runtime = await make(backend)
    await said(runtime, left)
    await runtime.write(f"{runtime.workspace}/it", b"exit 1\n", mode=0o755)
    assert await said(runtime, "cat it; stat -c '%F %a' it; ./it || echo $?") == "exit 1\nregular file 755\n1"


async def test_large_files_and_appending(make: Make, backend: str) -> None:
    runtime = await make(backend)
    data = bytes(range(256)) * 10_000
    await runtime.write(f"{runtime.workspace}/big", data)
    await runtime.write(f"{runtime.workspace}/big", b"end", append=True)
    assert await runtime.read(f"{runtime.workspace}/big") == data + b"end"
    await runtime.write(f"{runtime.workspace}/big", b"")
    assert await runtime.read(f"{runtime.workspace}/big") == b""
