# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""npm packages at exact, verified versions, installed once per machine.

Each harness has a lock file in this package: versions with integrity hashes, and no addresses, so that npm asks the
registry that the machine is set up for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.harnesses import node
from nemo_gym_polar.harnesses.base import HarnessError

LOCKS = Path(__file__).with_name("locks")
NPM_SECONDS = 600


def cache_root() -> Path:
    """Where installed harnesses live: `POLAR_CACHE_DIR`, else below the user's cache directory."""
    if chosen := os.environ.get("POLAR_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemo-gym-polar"


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """A locked npm package: `locks/<name>/` holds its package.json and package-lock.json."""

    name: str
    version: str
    locks: Path = LOCKS

    @property
    def directory(self) -> Path:
        """Where it is installed; another lock is another directory."""
        digest = hashlib.sha256((self.locks / self.name / "package-lock.json").read_bytes()).hexdigest()[:12]
        return cache_root() / "harnesses" / f"{self.name}-{self.version}-{digest}"

    def installed(self) -> bool:
        return self.directory.is_dir()

    def install(self, prepare: Callable[[Path], None] | None = None) -> None:
        """Install if it isn't; `prepare` may add to the new directory. Others that install meanwhile wait."""
        directory = self.directory
        with alone(directory.with_name(f"{directory.name}.lock")):
            if directory.is_dir():
                return
            staging = Path(tempfile.mkdtemp(prefix=f".{self.name}-", dir=directory.parent))
            try:
                self.fill(staging)
                if prepare:
                    prepare(staging)
                staging.chmod(0o755)
                staging.rename(directory)
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def fill(self, directory: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(self.locks / self.name / name, directory / name)
        command = [*node.npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            done = subprocess.run(command, cwd=directory, capture_output=True, timeout=NPM_SECONDS, umask=0o022)
        except subprocess.TimeoutExpired:
            raise HarnessError(self.failure(f"no end after {NPM_SECONDS} s")) from None
        if done.returncode:
            raise HarnessError(self.failure(reason(done.stderr.decode(errors="replace"))))

    def failure(self, why: str) -> str:
        remedy = "check the network and npm's registry setting, or copy POLAR_CACHE_DIR from a machine that has it"
        return f"npm could not install {self.name} {self.version}: {why}; {remedy}"


def reason(stderr: str) -> str:
    """The first line of npm's complaint that says something."""
    lines = [line.removeprefix("npm error").strip() for line in stderr.splitlines()]
    told = [line for line in lines if line and not line.startswith(("code ", "errno ", "syscall "))]
    return told[0] if told else "npm said nothing"


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock between processes; it goes with the process, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
