# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A directory of skills from the host, read-only in every runtime, under the name that an agent looks for."""

from __future__ import annotations

from pathlib import Path

from nemo_gym_polar.harnesses.base import HarnessError, Mount

TARGET = "/opt/polar/skills"
LINK = 'mkdir -p "${2%/*}" && ln -sfn "$1" "$2" && shift 2 && exec "$@"'


def mounts(directory: Path | None) -> tuple[Mount, ...]:
    """What shows the directory at `TARGET`; nothing without one."""
    if directory is None:
        return ()
    if not directory.is_dir():
        raise HarnessError(f"agent.settings.skills={str(directory)!r}: there is no such directory on this machine")
    return (Mount(directory.resolve(), TARGET),)


def linked(argv: tuple[str, ...], directory: Path | None, place: str) -> tuple[str, ...]:
    """`argv`, after a link from `place` to the skills: agents look below their home, where a mount can't be."""
    return argv if directory is None else ("sh", "-c", LINK, "sh", TARGET, place, *argv)
