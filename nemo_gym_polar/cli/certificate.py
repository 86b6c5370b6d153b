# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar certificate`: how a model's conversations can be continued, before a gateway is started for it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.engines.certificate import Certificate, Difference, Step, certify
from nemo_gym_polar.engines.rendering import Rendering


class History(StrEnum):
    """What becomes of the policy's thinking once its question is answered."""

    KEEP = "keep"
    STRIP = "strip"


def certificate(
    tokenizer: Annotated[Path, typer.Option(help="Directory with the model's tokenizer.json.")],
    renderer: Annotated[str, typer.Option(help="The model's chat format; auto, or default for its template.")],
    renderer_options: Annotated[str, typer.Option(help="Its options as JSON: '{\"enable_thinking\": false}'.")] = "{}",
    history: Annotated[History, typer.Option(help="keep past thinking, or strip it as the template does.")] = (
        History.STRIP
    ),
    model: Annotated[str, typer.Option(help="The model's name, for --renderer auto.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Try each step that a conversation can take: is appending to its tokens what rendering it whole would give?"""
    options = _options(renderer_options)
    try:
        rendering = Rendering.load(tokenizer, renderer, options, history=history.value, model=model)
    except ValueError as error:
        raise UsageError(str(error).replace("engine.", "")) from error
    found = certify(rendering)
    if as_json:
        typer.echo(json.dumps(found.plain(), indent=2))
    else:
        _print(found)


def _options(text: str) -> dict[str, Any]:
    try:
        options = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--renderer-options: {text!r} is not JSON: {error}") from error
    if not isinstance(options, dict):
        raise UsageError(f"--renderer-options: {text!r} is not an object; give '{{\"name\": value}}'")
    return options


def _print(found: Certificate) -> None:
    console = Console(highlight=False, soft_wrap=True)
    options = json.dumps(dict(found.options))
    console.print(f"renderer {found.renderer}, options {options}, history {found.history}", markup=False)
    console.print(f"tokenizer {found.tokenizer[:16]}, template {(found.template or 'none')[:16]}")
    table = Table("step", "verdict", "first difference: known → rendered whole", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for step in found.steps:
        table.add_row(step.name, step.verdict, escape(_detail(step)))
    console.print(table)


def _detail(step: Step) -> str:
    if step.reason is not None:
        return step.reason
    return "" if step.difference is None else _parting(step.difference)


def _parting(at: Difference) -> str:
    return f"token {at.position}: {at.known_text!r} → {at.rendered_text!r}"
