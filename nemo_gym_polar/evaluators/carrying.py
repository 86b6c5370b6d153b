# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a harness did, taken over into a fresh sandbox, so that nothing else of its own can touch the score.

`workspace`: the fresh workspace becomes the harness's, file by file. `patch`: only a `git diff` against what the fresh
sandbox has committed goes over, so that ignored files, caches and the repository's own settings stay behind.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nemo_gym_polar.evaluators.base import EvaluatorError
from nemo_gym_polar.runtimes.base import Exit, Runtime

PATCH = ".polar.patch"
IDENTITY = "-c core.fsmonitor= -c core.hooksPath=/dev/null -c safe.directory=*"


async def carry_workspace(harness: Runtime, fresh: Runtime, seconds: float) -> None:
    """Raises `SandboxError` if it is too large or can't be read."""
    with tempfile.TemporaryDirectory(prefix="polar-carry-") as directory:
        archive = Path(directory, "workspace.tar")
        await harness.save(harness.workspace, archive, timeout=seconds)
        await fresh.restore(archive, fresh.workspace, clean=True, timeout=seconds)


async def carry_patch(
    harness: Runtime, fresh: Runtime, repository: str, seconds: float, exclude: Sequence[str] = ()
) -> int:
    """Bytes of the patch; 0 if the harness changed nothing. Raises `EvaluatorError` if there is no diff or no way to
    apply it."""
    tree = "rev-parse HEAD^{tree}"  # by content: commits made while a sandbox was prepared have other names in each
    base = (await git(fresh, repository, tree, seconds)).stdout.decode().strip()
    there = f"{harness.home}/{PATCH}"
    unwanted = " ".join(shlex.quote(f":(exclude){pattern}") for pattern in exclude)
    diff = f"diff --no-ext-diff --no-textconv --binary --cached {base} -- . {unwanted} > {there}"
    await git(harness, repository, f"add -A && git {IDENTITY} {diff}", seconds)
    patch = await harness.read(there)
    if patch:
        here = f"{fresh.home}/{PATCH}"
        await fresh.write(here, patch)
        await git(fresh, repository, f"apply --whitespace=nowarn {here}", seconds)
    return len(patch)


async def git(runtime: Runtime, repository: str, command: str, seconds: float) -> Exit:
    ended = await runtime.run(["bash", "-c", f"git {IDENTITY} {command}"], cwd=repository, timeout=seconds)
    if ended.code != 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise EvaluatorError(
            f"git {command.split()[0]} in {repository}: {said[-1] if said else f'exit code {ended.code}'}"
        )
    return ended
