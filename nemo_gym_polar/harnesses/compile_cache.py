# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An agent's compiled code, made once at install: a session then costs a quarter less CPU.

Node keeps one cache per user id, and a sandbox reads it as uid 1000; the portable form does not depend on the path.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from nemo_gym_polar.harnesses import node
from nemo_gym_polar.harnesses.base import HarnessContext, Launch

CACHE = "compile-cache"
SANDBOX_UID = 1000
SECONDS = 60
CLOSED = "http://127.0.0.1:1"  # nothing listens there: the run ends at its first model call, with all code loaded


def environment(root: str) -> dict[str, str]:
    return {"NODE_COMPILE_CACHE": f"{root}/{CACHE}", "NODE_COMPILE_CACHE_PORTABLE": "1"}


def warm(root: Path, target: str, launch: Callable[[HarnessContext], Launch]) -> None:
    """Run the agent in `root` once without a model, as `launch` would in `target`. Its failure is expected; without a
    cache it only starts more slowly."""
    with tempfile.TemporaryDirectory(dir=root) as home:
        made = launch(context(home))
        for path, data in made.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        places = {target: str(root), node.TARGET: str(node.root())}
        env = {"HOME": home, "PATH": "/usr/bin:/bin", **{name: placed(v, places) for name, v in made.env.items()}}
        argv = [placed(word, places) for word in made.argv]
        run_out(argv, home, env)
    share(root / CACHE)


def run_out(argv: list[str], directory: str, env: dict[str, str]) -> None:
    """Run a program to its end, but not for ever, and let nothing that it started stay."""
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        argv, cwd=directory, env=env, stdin=nothing, stdout=nothing, stderr=nothing, umask=0o022, start_new_session=True
    ) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def context(home: str) -> HarnessContext:
    return HarnessContext(
        instruction="hello",
        base_url=CLOSED,
        secret="none",
        model="none",
        home=home,
        workspace=home,
        context_tokens=1_000_000,
        max_tokens=1000,
    )


def placed(text: str, places: dict[str, str]) -> str:
    for inside, here in places.items():
        text = text.replace(inside, here)
    return text


def share(cache: Path) -> None:
    """Let the sandbox's user find what this user's run left."""
    own = f"-{os.getuid()}"
    for directory in cache.glob(f"*{own}"):
        other = directory.with_name(directory.name.removesuffix(own) + f"-{SANDBOX_UID}")
        if not other.exists():
            other.symlink_to(directory.name)
    for path in cache.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
