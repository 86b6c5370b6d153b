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

from nemo_gym_polar.evaluators.base import EvaluatorError, EvaluatorTimeoutError
from nemo_gym_polar.runtimes.base import Exit, Runtime

PATCH = ".polar.patch"
GIT = "git -c core.fsmonitor= -c core.hooksPath=/dev/null -c safe.directory=*"


async def carry_workspace(harness: Runtime, fresh: Runtime, seconds: float) -> None:
    """Raises `SandboxError` if it is too large or can't be read."""
    with tempfile.TemporaryFile() as archive:
        await harness.save(harness.workspace, archive, timeout=seconds)
        await fresh.restore(archive, fresh.workspace, clean=True, timeout=seconds)


async def carry_patch(
    harness: Runtime,
    fresh: Runtime,
    repository: str,
    seconds: float,
    *,
    exclude: Sequence[str] = (),
    command: str | None = None,
) -> int:
    """Bytes of the patch; 0 if the harness changed nothing. Raises `EvaluatorError` if there is no diff or no way to
    apply it. `exclude` are git's path patterns; `command` prints the patch instead of `git diff`."""
    there, here = f"{harness.home}/{PATCH}", f"{fresh.home}/{PATCH}"
    diff = command or await difference(fresh, repository, seconds, exclude)
    await bash(harness, repository, f"rm -rf {there}; ( {diff}\n) > {there}", seconds, "patch")
    patch = await harness.read(there)
    if patch:
        await fresh.write(here, patch)
        await bash(fresh, repository, f"{GIT} apply --whitespace=nowarn {here}", seconds, "git apply")
    return len(patch)


async def difference(fresh: Runtime, repository: str, seconds: float, exclude: Sequence[str]) -> str:
    """The command that shows what was changed since what the fresh sandbox has committed. That is named by its content:
    commits that were made while a sandbox was prepared have other names in each."""
    told = await bash(fresh, repository, f"{GIT} rev-parse HEAD^{{tree}}", seconds, "git rev-parse")
    base = told.stdout.decode().strip()
    unwanted = " ".join(shlex.quote(f":(exclude){pattern}") for pattern in exclude)
    diff = f"{GIT} diff --no-ext-diff --no-textconv --no-color --binary --cached {base} -- . {unwanted}"
    return f"{GIT} add -A && {diff}"


async def bash(runtime: Runtime, directory: str, command: str, seconds: float, name: str) -> Exit:
    ended = await runtime.run(["bash", "-c", command], cwd=directory, timeout=seconds)
    if ended.timed_out:
        raise EvaluatorTimeoutError(f"{name} in {directory} took longer than {seconds:.0f} s")
    if ended.code != 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise EvaluatorError(f"{name} in {directory}: {said[0] if said else f'exit code {ended.code}'}")
    return ended
