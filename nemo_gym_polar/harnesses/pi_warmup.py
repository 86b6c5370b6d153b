# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Pi's compiled code, made once at install: a session then costs a quarter less CPU.

Node keeps one cache per user id, and a sandbox reads it as uid 1000; the portable form does not depend on the path.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from nemo_gym_polar.harnesses import node

CACHE = "compile-cache"
SANDBOX_UID = 1000
SECONDS = 60
CLOSED = "http://127.0.0.1:1/v1"  # nothing listens there: the run ends at its first model call, with all code loaded


def environment(root: str) -> dict[str, str]:
    return {"NODE_COMPILE_CACHE": f"{root}/{CACHE}", "NODE_COMPILE_CACHE_PORTABLE": "1"}


def warm(root: Path, cli: Path) -> None:
    """Run Pi once without a model. Its failure is expected; without a cache it only starts more slowly."""
    with tempfile.TemporaryDirectory(dir=root) as home:
        agent = Path(home, ".pi", "agent")
        agent.mkdir(parents=True)
        agent.joinpath("settings.json").write_text(json.dumps({"retry": {"enabled": False}}))
        model = {"id": "m", "contextWindow": 1000, "maxTokens": 100, "input": ["text"]}
        provider = {"baseUrl": CLOSED, "api": "openai-completions", "apiKey": "none", "models": [model]}
        agent.joinpath("models.json").write_text(json.dumps({"providers": {"none": provider}}))
        command = [
            str(node.binary()),
            str(cli),
            "-p",
            "--provider",
            "none",
            "--model",
            "m",
            "--no-session",
            "--",
            "hello",
        ]
        env = {"HOME": home, "PATH": "/usr/bin:/bin", "PI_OFFLINE": "1", **environment(str(root))}
        subprocess.run(
            command, cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, umask=0o022
        )
    share(root / CACHE)


def share(cache: Path) -> None:
    """Let the sandbox's user find what this user's run left."""
    own = f"-{os.getuid()}"
    for directory in cache.glob(f"*{own}"):
        other = directory.with_name(directory.name.removesuffix(own) + f"-{SANDBOX_UID}")
        if not other.exists():
            other.symlink_to(directory.name)
    for path in cache.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
