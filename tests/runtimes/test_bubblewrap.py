# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What bubblewrap adds: one identity for all, nothing of the host to write or to reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.runtimes import bubblewrap
from nemo_gym_polar.runtimes.base import Mount, SandboxError
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime


@pytest.fixture
async def sandbox(started: Any) -> Any:
    return await started("bubblewrap")


async def output(sandbox: Any, command: str) -> str:
    ended = await sandbox.run(["bash", "-c", command], timeout=20)
    return (ended.stdout + ended.stderr).decode().strip()


async def test_identity_is_the_same_everywhere(sandbox: Any) -> None:
    expected = "uid=1000(agent) gid=1000(agent) groups=1000(agent) polar /workspace /home/agent agent"
    assert (await output(sandbox, "echo $(id) $(hostname) $(pwd) ~ $(whoami)")) == expected
    assert await output(sandbox, "stat -c %U /workspace ~ /tmp /dev/shm | sort -u") == "agent"


async def test_two_sandboxes_look_alike(started: Any) -> None:
    look = (
        "env | sort; ls -lan /etc /opt /opt/polar /dev | grep -v total | sed 's/ [A-Z][a-z][a-z] .*[0-9:]* / /'; ps ax"
    )
    first, second = await output(await started("bubblewrap"), look), await output(await started("bubblewrap"), look)
    assert first == second


@pytest.mark.parametrize(
    "path", ["/x", "/etc/x", "/usr/x", "/dev/x", "/opt/x", "/opt/polar/runtime/inside/x", "/run/x", "/home/x"]
)
async def test_the_system_is_read_only(sandbox: Any, path: str) -> None:
    assert "cannot touch" in await output(sandbox, f"touch {path}")


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger"])
async def test_kernel_settings_are_out_of_reach(sandbox: Any, path: str) -> None:
    assert await output(sandbox, f"test -w {path} && echo writable") == ""


async def test_nothing_of_the_host_is_visible(sandbox: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    assert "No such file" in await output(sandbox, f"ls {tmp_path} /root /etc/shadow /var/log 2>&1 | sort -u")
    assert await output(sandbox, "ls /proc | grep -c '^[0-9]'") in {"3", "4", "5"}  # supervisor, bash, ls, grep


async def test_there_is_no_network(sandbox: Any) -> None:
    assert await output(sandbox, "cat /proc/net/dev | tail -n +3 | cut -d: -f1") == "lo"


async def test_the_supervisor_can_neither_be_killed_nor_read(sandbox: Any) -> None:
    await output(sandbox, "for s in KILL STOP TERM INT HUP SEGV; do kill -$s 1; done; sleep 0.1")
    assert await sandbox.alive()
    assert "denied" in await output(sandbox, "cat /proc/1/environ")
    assert "denied" in await output(sandbox, "echo x > /proc/1/fd/1")


async def test_writing_gigabytes_ends_at_the_size_of_the_space(started: Any) -> None:
    sandbox = await started("bubblewrap", workspace_mb=4, scratch_mb=2)
    fill = "for d in /workspace ~ /tmp /dev/shm; do cat /dev/zero > $d/big; wc -c < $d/big; done 2>/dev/null"
    sizes = [int(size) for size in (await output(sandbox, fill)).split()]
    assert sizes == [4 << 20, 2 << 20, 2 << 20, 2 << 20]
    with pytest.raises(SandboxError, match="No space left"):
        await sandbox.write("/workspace/more", b"x" * 100_000)
    assert await sandbox.alive()


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    (tmp_path / "tool").write_text("#!/bin/sh\necho from the tool\n")
    (tmp_path / "tool").chmod(0o755)
    tmp_path.chmod(0o755)
    return tmp_path


async def test_mounts_are_read_only_and_at_their_place(tool: Path) -> None:
    sandbox = BubblewrapRuntime(gateway=None, mounts=[Mount(tool, "/opt/polar/harness/tool")])
    await sandbox.start()
    try:
        assert await output(sandbox, "/opt/polar/harness/tool/tool; touch /opt/polar/harness/tool/x") == (
            "from the tool\ntouch: cannot touch '/opt/polar/harness/tool/x': Read-only file system"
        )
    finally:
        await sandbox.stop()


async def test_missing_bwrap_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match=r"apt-get install bubblewrap.*runtime=local"):
        await BubblewrapRuntime(gateway=None).start()


async def test_forbidden_bwrap_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxError, match=r"No permissions.*user namespaces.*runtime=local"):
        await BubblewrapRuntime(gateway=None).start()


async def test_a_missing_gateway_socket_is_an_error_at_start(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="is the gateway running"):
        await BubblewrapRuntime(gateway=tmp_path / "none.sock").start()


def test_an_ordinary_user_gets_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.os, "geteuid", lambda: 1234)
    assert bubblewrap.namespaces()[:5] == ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    assert BubblewrapRuntime(gateway=None).config()["become"] is None
