# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One virtual environment for all NeMo Gym servers.

NeMo Gym builds a virtual environment per server with uv, each with its own Ray: minutes and gigabytes. Where it finds
one at `<uv_venv_dir>/<kind>/<implementation>/.venv` and is told `skip_venv_if_present=true`, it uses that instead; a
link to the environment that already holds both packages will do, and then neither uv nor a network is needed.

    python -m nemo_gym_polar.environment.venvs DIRECTORY [KIND/IMPLEMENTATION ...]

makes the links and prints the two settings for the `gym` command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

SERVERS = ("resources_servers/polar", "responses_api_agents/polar_agent")


def link_venvs(directory: Path, servers: Sequence[str] = SERVERS, *, venv: Path | None = None) -> list[str]:
    """Link `venv` (default: the running interpreter's) for each server; returns the settings for `gym`."""
    venv = (venv or Path(sys.prefix)).absolute()
    for needed in ("bin/python", "bin/activate"):
        if not (venv / needed).exists():
            raise FileNotFoundError(f"{venv} has no {needed}: run this with the Python of a virtual environment")
    for server in servers:
        _link(directory.absolute() / server / ".venv", venv)
    return ["+skip_venv_if_present=true", f"+uv_venv_dir={directory.absolute()}"]


def _link(link: Path, venv: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    elif link.exists():
        raise FileExistsError(f"{link} is a real directory: remove it, or choose another directory")
    link.symlink_to(venv, target_is_directory=True)


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m nemo_gym_polar.environment.venvs DIRECTORY [KIND/IMPLEMENTATION ...]", file=sys.stderr)
        return 2
    try:
        print(*link_venvs(Path(arguments[0]), [*SERVERS, *arguments[1:]]))
    except OSError as error:
        print(f"venvs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
