# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The Python that runs the supervisor, and how it is made visible inside a sandbox."""

from __future__ import annotations

import compileall
import functools
import sys
from pathlib import Path

from nemo_gym_polar.runtimes.base import Mount

INSIDE_PREFIX = "/opt/polar/python"


def name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def host() -> Path:
    """The base interpreter: a virtual environment's own would need the environment inside too."""
    return Path(sys.base_prefix).resolve() / "bin" / name()


def visible() -> tuple[str, tuple[Mount, ...]]:
    """The interpreter's path inside a sandbox that shows /usr, and the mounts that path needs."""
    prefix = Path(sys.base_prefix).resolve()
    if prefix.is_relative_to("/usr"):
        return str(prefix / "bin" / name()), ()
    return f"{INSIDE_PREFIX}/bin/{name()}", (Mount(prefix, INSIDE_PREFIX),)


@functools.cache
def compiled(directory: Path) -> Path:
    """The directory with its byte code beside it, which saves each sandbox 8 ms; a read-only one just stays slower."""
    compileall.compile_dir(directory, quiet=2)
    return directory
