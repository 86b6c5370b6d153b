# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What holds in every sandbox: commands, files, limits, and that nothing outlives its command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import psutil
import pytest

from nemo_gym_polar.runtimes import supervised
from nemo_gym_polar.runtimes.base import Runtime, SandboxError
from nemo_gym_polar.runtimes.inside.processes import descendants
from nemo_gym_polar.runtimes.registry import make_runtime

HIDING = [
    "{} &",
    "setsid {} &",
    "(setsid nohup {} </dev/null >/dev/null 2>&1 &) &",
    "trap '' TERM HUP INT; ({}) & disown -a;",
    "env -i setsid bash -c 'cd /; exec -a harmless {}' >/dev/null 2>&1 &",
]


def shell(command: str) -> list[str]:
    return ["bash", "-c", command]


async def test_output_and_exit_code(runtime: Runtime) -> None:
    ended = await runtime.run(shell("echo out; echo err >&2; exit 3"), timeout=10)
    assert (ended.code, ended.stdout, ended.stderr, ended.timed_out) == (3, b"out\n", b"err\n", False)
    assert 0 < ended.seconds < 10


async def test_death_by_signal_is_a_negative_code(runtime: Runtime) -> None:
    assert (await runtime.run(shell("kill -TERM $$"), timeout=10)).code == -signal.SIGTERM


async def test_runs_in_workspace_with_home_and_extra_environment(runtime: Runtime) -> None:
    ended = await runtime.run(shell('pwd; echo "$HOME"; echo "$EXTRA"; cat'), env={"EXTRA": "a b"}, timeout=10)
    assert ended.stdout.decode().splitlines() == [runtime.workspace, runtime.home, "a b"]


async def test_environment_of_the_host_stays_out(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "x")
    assert b"A_SECRET" not in (await runtime.run(["env"], timeout=10)).stdout


@pytest.mark.parametrize(("argv", "code"), [(["no-such-program"], 127), (["/etc/passwd"], 126)])
async def test_a_program_that_cannot_run(runtime: Runtime, argv: list[str], code: int) -> None:
    ended = await runtime.run(argv, timeout=10)
    assert ended.code == code
    assert argv[0].encode() in ended.stderr


async def test_files_round_trip(runtime: Runtime) -> None:
    path, data = f"{runtime.workspace}/deep/er/file.bin", bytes(range(256)) * 1000
    await runtime.write(path, data)
    assert await runtime.read(path) == data
    ended = await runtime.run(shell("cd deep/er && wc -c < file.bin && echo more >> file.bin && id -u > u"), timeout=10)
    assert ended.stdout == b"256000\n"
    assert (await runtime.read(path))[256000:] == b"more\n"


@pytest.mark.parametrize(
    ("make", "reason"),
    [("mkfifo it", "not a regular file"), ("ln -s /dev/zero it", "not a regular file"), ("true", "No such file"),
     ("truncate -s 17M it", "larger than"), ("mkdir it", "Is a directory")],
)  # fmt: skip
async def test_reading_what_is_not_a_plain_small_file(runtime: Runtime, make: str, reason: str) -> None:
    await runtime.run(shell(make), timeout=10)
    with pytest.raises(SandboxError, match=reason):
        await runtime.read(f"{runtime.workspace}/it")
    assert await runtime.alive()


@pytest.mark.parametrize("hiding", HIDING)
async def test_no_process_survives_its_command(runtime: Runtime, marked: Any, hiding: str) -> None:
    ended = await runtime.run(shell(hiding.format(marked.command) + " sleep 0.1"), timeout=10)
    assert ended.code == 0
    assert not marked.alive()
    assert await runtime.alive()


@pytest.mark.parametrize("hiding", HIDING)
async def test_no_process_survives_a_time_out(runtime: Runtime, marked: Any, hiding: str) -> None:
    ended = await runtime.run(shell(hiding.format(marked.command) + " sleep 60"), timeout=0.3)
    assert (ended.code, ended.timed_out, ended.killed_for) == (None, True, "time")
    assert ended.seconds >= 0.3
    assert not marked.alive()


async def test_output_of_a_timed_out_command_is_kept(runtime: Runtime) -> None:
    ended = await runtime.run(shell("echo before; sleep 60"), timeout=2)
    assert (ended.stdout, ended.timed_out) == (b"before\n", True)


async def test_no_process_survives_stop(runtime: Runtime, marked: Any) -> None:
    task = asyncio.create_task(runtime.run(shell(f"setsid {marked.command} & {marked.command}"), timeout=60))
    assert await marked.seen()
    await runtime.stop()
    assert not marked.alive()
    with pytest.raises(SandboxError, match="ended"):
        await task
    await runtime.stop()
    assert not await runtime.alive()


async def test_cancelling_a_run_kills_it_and_leaves_a_working_sandbox(runtime: Runtime, marked: Any) -> None:
    task = asyncio.create_task(runtime.run(shell(marked.command), timeout=60))
    assert await marked.seen()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await runtime.run(["echo", "next"], timeout=10)).stdout == b"next\n"
    assert not marked.alive()


async def test_commands_wait_for_each_other(runtime: Runtime) -> None:
    ended = await asyncio.gather(*(runtime.run(shell(f"sleep 0.05; echo {n}"), timeout=10) for n in range(3)))
    assert [one.stdout for one in ended] == [b"0\n", b"1\n", b"2\n"]


async def test_a_flood_of_output_is_cut(started: Any, backend: str, tmp_path: Path) -> None:
    runtime = await started(backend, output_mb=8, log_mb=1)
    log = tmp_path / "logs" / "harness.log"
    ended = await runtime.run(["yes"], timeout=30, log=log)
    assert (ended.code, ended.killed_for, ended.timed_out) == (None, "output", False)
    assert len(ended.stdout) <= 1 << 16
    assert 1 << 20 <= log.stat().st_size < (1 << 20) + 100
    assert log.read_bytes().endswith(b"bytes more were printed and not kept]\n")


async def test_the_log_holds_both_streams(runtime: Runtime, tmp_path: Path) -> None:
    await runtime.run(shell("echo a; sleep 0.05; echo b >&2"), timeout=10, log=tmp_path / "log")
    await runtime.run(["echo", "c"], timeout=10, log=tmp_path / "log")
    assert (tmp_path / "log").read_text() == "a\nb\nc\n"


async def test_a_full_disk_under_the_log_does_not_hurt_the_command(runtime: Runtime) -> None:
    ended = await runtime.run(["echo", "fine"], timeout=10, log=Path("/dev/full"))
    assert (ended.code, ended.stdout) == (0, b"fine\n")


async def test_too_many_processes(started: Any, backend: str, marked: Any) -> None:
    runtime = await started(backend, processes=40)
    many = f"for i in $(seq 60); do {marked.command} & done; wait"
    ended = await runtime.run(shell(many), timeout=30)
    assert (ended.code, ended.killed_for) == (None, "processes")
    assert not marked.alive()


async def test_a_fork_bomb(started: Any) -> None:
    runtime = await started("bubblewrap", processes=100)
    ended = await runtime.run(shell("bomb() { bomb | bomb & }; bomb; sleep 60"), timeout=20)
    assert (ended.code, ended.killed_for) == (None, "processes")
    assert (await runtime.run(["echo", "well"], timeout=10)).stdout == b"well\n"


async def test_resource_limits_are_only_lowered(started: Any, backend: str) -> None:
    runtime = await started(backend, open_files=200, file_mb=1)
    ended = await runtime.run(shell("ulimit -n; ulimit -c; head -c 2M /dev/zero > big; wc -c < big"), timeout=10)
    assert ended.stdout.split() == [b"200", b"0", b"1048576"]
    generous = await started(backend, open_files=1 << 30)
    assert (await generous.run(shell("ulimit -n"), timeout=10)).code == 0


async def test_a_stuck_sandbox_is_ended_all_the_same(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "GRACE_SECONDS", 0.3)
    pids = descendants(runtime.process.pid) or [runtime.process.pid]
    os.kill(pids[-1], signal.SIGSTOP)
    await runtime.stop()
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=5)
    assert not alive


async def test_a_path_of_any_length_is_answered(runtime: Runtime) -> None:
    with pytest.raises(SandboxError, match="File name too long"):
        await runtime.write("/" + 100_000 * "x", b"")
    assert await runtime.alive()


async def test_a_dead_sandbox_is_noticed(runtime: Any) -> None:
    for pid in (runtime.process.pid, *descendants(runtime.process.pid)):
        os.kill(pid, signal.SIGKILL)
    await runtime.process.wait()
    assert not await runtime.alive()
    with pytest.raises(SandboxError, match="ended"):
        await runtime.run(["true"], timeout=10)


@pytest.mark.parametrize("hiding", HIDING[:3])
async def test_a_command_that_kills_its_supervisor_takes_nobody_along(started: Any, marked: Any, hiding: str) -> None:
    """Under `local` it can; its daemons are found by where they work all the same."""
    runtime = await started("local")
    with pytest.raises(SandboxError, match="ended"):
        await runtime.run(shell(f"{hiding.format(marked.command)} sleep 0.2; kill -9 $PPID; sleep 60"), timeout=60)
    assert await marked.seen()
    await runtime.stop()
    assert await marked.gone()
    assert await removed(runtime.workspace)


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelling_a_start_at_any_step_ends_in_time(backend: str, times: int) -> None:
    """asyncio can't be cancelled between starting a process and connecting its pipes."""
    for steps in range(12):
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            runtime = make_runtime(backend, None)
        task = asyncio.create_task(runtime.start())
        for _ in range(steps):
            await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        _, waiting = await asyncio.wait([task], timeout=60)
        assert not waiting
        await runtime.stop()
    assert not [child for child in psutil.Process().children() if child.name() in ("bwrap", "python3.12")]


async def test_before_start_nothing_works(backend: str, started: Any) -> None:
    runtime = await started(backend)
    await runtime.stop()
    with pytest.raises(SandboxError, match="not started"):
        await runtime.run(["true"], timeout=1)


PARENT = """
import asyncio, sys, warnings
from nemo_gym_polar.runtimes.registry import GatewayAddress, make_runtime
warnings.simplefilter("ignore")
async def main():
    runtime = make_runtime(sys.argv[1], GatewayAddress("http://127.0.0.1:9"))
    await runtime.start()
    print(runtime.workspace, flush=True)
    await runtime.run(["bash", "-c", f"setsid {sys.argv[2]} & {sys.argv[2]}"], timeout=60)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_no_process_survives_the_parent(backend: str, marked: Any, how: signal.Signals) -> None:
    argv = [sys.executable, "-c", PARENT, backend, marked.command]
    parent = await asyncio.create_subprocess_exec(*argv, stdout=-1, stderr=asyncio.subprocess.DEVNULL)
    assert parent.stdout
    workspace = (await parent.stdout.readline()).decode().strip()
    assert await marked.seen(20)
    parent.send_signal(how)
    await asyncio.wait_for(parent.wait(), 10)
    assert await marked.gone()
    assert await removed(workspace)


async def removed(path: str) -> bool:
    for _ in range(100):
        if not await asyncio.to_thread(Path(path).exists):
            return True
        await asyncio.sleep(0.05)
    return False
