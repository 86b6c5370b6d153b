# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`nemo-rl`: train a policy through real agents."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nemo_gym_polar.cli import errors, paths
from nemo_gym_polar.cli.compose import compose
from nemo_gym_polar.cli.validate import validate
from nemo_gym_polar.training.run_settings import TrainSettings

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, rich_markup_mode="markdown")


class Shown(StrEnum):
    """Which part of the configuration to print."""

    JOB = "job"


def main() -> None:
    errors.run("nemo-rl", app)


def _groups() -> str:
    """The choices that conf/ offers, for the help page."""
    lines = ["Groups (`group=option`), each a file of conf/:"]
    for group in sorted(path for path in paths.conf().iterdir() if path.is_dir()):
        options = " | ".join(sorted(file.stem for file in group.glob("*.yaml")))
        lines.append(f"`{group.name}={options}`")
    return "\n\n".join(lines)


@app.callback()
def _program() -> None:
    """Train a policy through real agents."""


@app.command(epilog=_groups())
def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="By Hydra's grammar: `env=polar trainer.steps=5 ~name +harness.env.A=b`.")
    ] = None,
    config: Annotated[
        str, typer.Option(help="A recipe: the path of a YAML file, or the name of a shipped one.")
    ] = "laptop",
    cfg: Annotated[Shown | None, typer.Option(help="Print the composed configuration, and do no more.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check settings and tasks, and do no more.")] = False,
) -> None:
    """Train by GRPO: sample sessions of real agents, score them, learn from them, again."""
    composed = compose(paths.recipe(config), overrides or ())
    if cfg:
        typer.echo(composed.yaml(), nl=False)
        return
    settings = validate(composed, TrainSettings)
    # Not at the top, nor the one below, which loads torch: what is wrong should be told at once.
    from nemo_gym_polar.training.runnable import runnable_tasks

    runnable_tasks(settings)
    if dry_run:
        typer.echo(f"{composed.recipe} holds: {settings.trainer.steps} steps on env.tasks={settings.env.tasks}")
        return
    from nemo_gym_polar.cli import run

    run.run(settings)
