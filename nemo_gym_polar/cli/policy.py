# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar policy`: the embedded policy that a run starts from."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from nemo_gym_polar.cli import paths

app = typer.Typer(no_args_is_help=True, help="The policy that a run starts from.")


@app.callback()
def _group() -> None:
    """The policy that a run starts from."""


@app.command()
def prepare(
    overrides: Annotated[list[str] | None, typer.Argument(help="As for `nemo-rl train`.")] = None,
    config: Annotated[
        str, typer.Option(help="A recipe: the path of a YAML file, or the name of a shipped one.")
    ] = "laptop",
) -> None:
    """Make the policy of a recipe, unless this machine has it, and print its directory."""
    # Not at the top: `polar` is quick, these load Hydra and torch.
    from nemo_gym_polar.cli.compose import compose
    from nemo_gym_polar.cli.validate import validate
    from nemo_gym_polar.training.first_policy import first_policy
    from nemo_gym_polar.training.progress import PlainProgress
    from nemo_gym_polar.training.run_settings import TrainSettings

    settings = validate(compose(paths.recipe(config), overrides or ()), TrainSettings)
    typer.echo(asyncio.run(first_policy(settings.policy, PlainProgress(), asyncio.Event())))
