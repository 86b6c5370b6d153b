# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox of Linux namespaces made by `bwrap`: no daemon, no image, milliseconds to start.

Inside: the system read-only, a workspace, home and /tmp of bounded size in memory, one user, one host name, and no
network but a loopback port that leads to the gateway. The supervisor is PID 1, so nothing outlives it; it ends when
this process does, because its stdin closes and because bwrap asks the kernel for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from nemo_gym_polar.runtimes import cpus, interpreter
from nemo_gym_polar.runtimes.base import NO_NEEDS, Mount, Needs, SandboxError
from nemo_gym_polar.runtimes.limits import MIB, Limits
from nemo_gym_polar.runtimes.supervised import INSIDE, SupervisedRuntime, supervise

WORKSPACE = "/workspace"
HOME = "/home/agent"
SCRATCH = ("/tmp", "/dev/shm")
UID = 1000
PORT = 8399
SOCKET = "/run/polar/gateway.sock"
SUPERVISOR = "/opt/polar/runtime"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "crypto-policies", "debian_version", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "magic", "mime.types", "os-release", "pki", "protocols", "services", "shells", "ssl", "terminfo",
)  # fmt: skip
TAKEN = frozenset(
    ("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr")
)
"""First parts of paths that a workspace can't have: they are the system's, the home's or the scratch space's."""
REMEDY = "install it (apt-get install bubblewrap), or choose runtime=local, which isolates less"


class BubblewrapRuntime(SupervisedRuntime):
    """`gateway` is the Unix socket of the gateway on this host; None leaves no network at all."""

    home = HOME
    gateway_url = f"http://127.0.0.1:{PORT}"

    def __init__(
        self,
        *,
        gateway: Path | None,
        mounts: Sequence[Mount] = (),
        limits: Limits | None = None,
        needs: Needs = NO_NEEDS,
    ) -> None:
        super().__init__()
        self.gateway = gateway
        self.mounts = tuple(mounts)
        self.limits = limits or Limits()
        self.needs = needs
        self.workspace = needs.workdir or WORKSPACE

    def command(self, config: str) -> list[str]:
        python, python_mounts = interpreter.visible()
        own = Mount(interpreter.compiled(INSIDE), f"{SUPERVISOR}/inside")
        return [
            find_bwrap(),
            *namespaces(),
            *system(),
            *spaces(self.limits, self.workspace),
            *shown((*python_mounts, own, *self.mounts)),
            *self.door(),
            *environment({"LD_LIBRARY_PATH": f"{interpreter.INSIDE_PREFIX}/lib"}),
            *("--remount-ro", "/", "--chdir", self.workspace, "--"),
            *(python, "-I", "-S", "-c", supervise(SUPERVISOR), config),
        ]

    def door(self) -> list[str]:
        if self.gateway is None:
            return []
        if not self.gateway.is_socket():
            raise SandboxError(f"gateway socket {self.gateway}: no such socket; is the gateway running?")
        if os.geteuid() == 0:
            os.chown(self.gateway, UID, UID)  # to connect is to write, and the sandbox is not root
        return ["--ro-bind", str(self.gateway), SOCKET]

    def config(self) -> dict[str, Any]:
        door = {"gateway": SOCKET if self.gateway else None, "port": PORT}
        become = {"uid": UID, "gid": UID, "own": [self.workspace, HOME, *SCRATCH]} if os.geteuid() == 0 else None
        return {
            "namespace": True,
            "become": become,
            "cpus": cpus.choose(self.needs.cpus),
            **door,
            **self.limits.supervisor(own_user=True),
        }

    def environment(self) -> dict[str, str]:
        user = {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash"}
        return {**user, "PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC", "PWD": self.workspace}

    def explain(self, failure: str) -> str:
        if failure.startswith("bwrap:"):
            return f"bubblewrap could not make a sandbox ({failure}); allow user namespaces, or {REMEDY}"
        return failure


def check_needs(needs: Needs) -> None:
    """Raise `SandboxError` for what a sandbox of this kind can't give, rather than run without it."""
    if needs.image:
        raise SandboxError(
            f"runtime.image={needs.image!r}: bubblewrap runs no images, it shows this machine's /usr; drop it"
        )
    if needs.network not in (None, "none") or needs.allow_internet:
        field = "allow_internet=true" if needs.allow_internet else f"network={needs.network!r}"
        raise SandboxError(f"runtime.{field}: a bubblewrap sandbox reaches the gateway and nothing else; drop it")
    if needs.gpus:
        raise SandboxError(f"runtime.gpus={needs.gpus}: a bubblewrap sandbox shows no devices; drop it")
    if needs.workdir and not fit(PurePosixPath(needs.workdir)):
        raise SandboxError(
            f"runtime.workdir={needs.workdir!r}: give an absolute path that the system doesn't use, as /testbed"
        )


def fit(path: PurePosixPath) -> bool:
    parts = path.parts
    own = path.is_relative_to("/opt/polar") or PurePosixPath("/opt/polar").is_relative_to(path)
    return path.is_absolute() and len(parts) > 1 and ".." not in parts and parts[1] not in TAKEN and not own


def find_bwrap() -> str:
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxError(f"bubblewrap (bwrap) is not on PATH: {REMEDY}")
    return path


def namespaces() -> list[str]:
    """Root makes no user namespace: a mapped root still owns /proc/sys. The supervisor becomes uid 1000 instead."""
    if os.geteuid() == 0:
        capabilities = ("CAP_CHOWN", "CAP_SETUID", "CAP_SETGID")
        identity = ["--cap-drop", "ALL", *(part for name in capabilities for part in ("--cap-add", name))]
    else:
        identity = ["--unshare-user", "--uid", str(UID), "--gid", str(UID)]
    kinds = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    life = ["--hostname", "polar", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
    return [*identity, *kinds, *life]


def system() -> list[str]:
    """/usr as it is on the host, the old top-level names, and an /etc without anything of the host's own."""
    options = [part for path in ("/etc", "/home", "/run", "/run/polar", "/var") for part in ("--dir", path)]
    options += ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for file in sorted((INSIDE / "etc").iterdir()):
        options += ["--ro-bind", str(file), f"/etc/{file.name}"]
    return options


def spaces(limits: Limits, workspace: str) -> list[str]:
    """Writable places; everything else is read-only or has no size."""
    scratch = str(limits.scratch_mb * MIB)
    options = ["--proc", "/proc", "--dev", "/dev"]
    for place in (*SCRATCH, HOME):
        options += ["--size", scratch, "--tmpfs", place]
    options += [part for parent in reversed(PurePosixPath(workspace).parents) for part in ("--dir", str(parent))]
    options += ["--size", str(limits.workspace_mb * MIB), "--tmpfs", workspace]
    return [*options, "--remount-ro", "/dev", "--symlink", "/tmp", "/var/tmp"]


def shown(mounts: Sequence[Mount]) -> list[str]:
    """Mounts, and before them their parent directories: bwrap's own would be closed to uid 1000."""
    parents = {str(parent) for mount in mounts for parent in PurePosixPath(mount.target).parents}
    options = [part for path in sorted(parents - {"/"}) for part in ("--dir", path)]
    return options + [part for mount in mounts for part in ("--ro-bind", str(mount.source), mount.target)]


def environment(variables: dict[str, str]) -> list[str]:
    return [part for name, value in variables.items() for part in ("--setenv", name, value)]
