# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL of its own for a test run: a private cluster on a Unix socket, gone with the run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

USER = "polar"
OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=60 -c shared_buffers=16MB"


@dataclass(frozen=True, slots=True)
class Postgres:
    directory: Path
    programs: Path
    owner: str | None  # who it runs as, where the tests are root, which it refuses

    def run(self, program: str, *arguments: str) -> str:
        as_owner = {"user": self.owner, "group": "nogroup", "extra_groups": []} if self.owner else {}
        done = subprocess.run(
            [self.programs / program, *arguments],
            capture_output=program != "pg_ctl",  # the server would hold the pipes open
            text=True,
            cwd=self.directory,
            timeout=120,
            check=False,
            **as_owner,
        )
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout or ""

    def control(self, *arguments: str) -> None:
        log = str(self.directory / "log")
        self.run("pg_ctl", "-D", str(self.directory / "data"), "-w", "-s", "-l", log, *arguments)

    def start(self) -> None:
        self.control("-o", f"{OPTIONS} -c unix_socket_directories='{self.directory}'", "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is as if its power were cut."""
        self.control("-m", mode, "stop")

    def database(self, name: str) -> str:
        """The URL of a new database."""
        name = re.sub(r"\W", "_", name)[-60:].lower()
        self.run("psql", "-h", str(self.directory), "-U", USER, "-q", "-c", f'CREATE DATABASE "{name}"', "postgres")
        return f"postgresql://{USER}@/{name}?host={self.directory}"


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Raises `RuntimeError` where the server's programs are missing: scripts/test.sh installs them."""
    directory = Path(tempfile.mkdtemp(prefix="polar-pg-"))
    owner = "nobody" if os.geteuid() == 0 else None
    if owner:
        shutil.chown(directory, owner)
    server = Postgres(directory, programs(), owner)
    try:
        server.run("initdb", "-D", str(directory / "data"), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def programs() -> Path:
    """Debian keeps them apart by version; others have them on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise RuntimeError("the tests need PostgreSQL's server: install the package postgresql, or run scripts/test.sh")
    return found[-1].parent if found else Path(str(on_path)).parent
