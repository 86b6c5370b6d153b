# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar harness`: the agent programs, at the versions that this package was tested with."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from nemo_gym_polar.harnesses.registry import HARNESSES, find

app = typer.Typer(no_args_is_help=True, help="Install and list agent programs.")


@app.command()
def install(names: Annotated[list[str], typer.Argument(help="Such as pi.")]) -> None:
    """Install agent programs into the cache (POLAR_CACHE_DIR), unless they are there."""
    for name in names:
        harness = find(name)({})
        if harness.installed():
            typer.echo(f"{name} is installed")
            continue
        typer.echo(f"installing {name}")
        started = time.monotonic()
        harness.install()
        typer.echo(f"installed {name} in {time.monotonic() - started:.0f} s")


@app.command("list")
def list_() -> None:
    """Say which agent programs are known, and which are installed."""
    for name in sorted(HARNESSES):
        typer.echo(f"{name:<12} {'installed' if find(name)({}).installed() else 'not installed'}")
