# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong: one line on stderr, the right exit code, a traceback only on request."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import aiohttp
import pytest
import typer
from pydantic import BaseModel, ValidationError

from nemo_gym_polar.cli import errors
from nemo_gym_polar.engines.base import EngineError


@pytest.fixture(autouse=True)
def _own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


class Colour(StrEnum):
    RED = "red"


class Settings(BaseModel):
    steps: int = 1


def refused() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"steps": "many"})
    return caught.value


def command(error: BaseException) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command()
    def fail() -> None:
        raise error

    return app


def outcome(app: typer.Typer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["prog"])
    with pytest.raises(SystemExit) as exited:
        errors.run("prog", app)
    code = exited.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (errors.CommandError("no such session"), 1, ["no such session"]),
        (errors.UsageError("steps=x is not a number"), 2, ["steps=x is not a number"]),
        (KeyboardInterrupt(), 130, ["interrupted"]),
        (
            OSError(errno.EADDRINUSE, "can't listen on here:1: in use; choose another port"),
            1,
            ["the port is taken: can't listen on here:1: in use; choose another with --port"],
        ),
        (OSError(errno.ENOSPC, "No space left on device", "runs/a"), 1, ["the disk is full", "runs/a"]),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "recipe.yaml"), 1, ["recipe.yaml"]),
        (
            EngineError("engine at http://127.0.0.1:1 refused\nthe connection"),
            1,
            ["127.0.0.1:1 refused the connection"],
        ),
        (aiohttp.ServerTimeoutError("no answer"), 1, ["no answer"]),
        (refused(), 1, ["steps='many'", "valid integer"]),
        (typer.Abort(), 1, ["aborted"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_known_errors_are_one_line(
    error: BaseException,
    code: int,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exit_code, stderr = outcome(command(error), capsys, monkeypatch)
    assert exit_code == code
    assert stderr.count("\n") == 1
    assert stderr.startswith("prog: error: ")
    for word in words:
        assert word in stderr


def test_unknown_options_are_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = command(KeyboardInterrupt())
    monkeypatch.setattr(sys, "argv", ["prog", "--colour"])
    with pytest.raises(SystemExit) as exited:
        errors.run("prog", app)
    assert exited.value.code == 2
    assert capsys.readouterr().err == "prog: error: No such option: --colour; try `prog --help`\n"


def test_a_wrong_value_points_to_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer(add_completion=False)

    @app.command("paint")
    def paint(colour: Colour) -> None: ...

    @app.command("rest")
    def rest() -> None: ...

    monkeypatch.setattr(sys, "argv", ["prog", "paint", "green"])
    with pytest.raises(SystemExit) as exited:
        errors.run("prog", app)
    assert exited.value.code == 2
    said = capsys.readouterr().err
    assert said == "prog: error: Invalid value for 'colour': 'green' is not one of 'red'; try `prog paint --help`\n"


def test_exit_codes_of_commands_pass_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome(command(typer.Exit(7)), capsys, monkeypatch) == (7, "")


BUG = """
import typer
from nemo_gym_polar.cli import errors

app = typer.Typer()

@app.command()
def fail() -> None:
    {}["absent"]

errors.run("prog", app)
"""


@pytest.fixture
def run_bug(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    script = tmp_path / "bug.py"
    script.write_text(BUG)

    def run(debug: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "POLAR_DEBUG": debug}
        return subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_a_bug_names_its_place_and_how_to_see_more(
    run_bug: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    ended = run_bug("0")
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "KeyError" in ended.stderr
    assert "bug.py:9" in ended.stderr
    assert "POLAR_DEBUG=1" in ended.stderr


def test_a_bug_shows_its_traceback_on_request(run_bug: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    ended = run_bug("1")
    assert ended.returncode == 1
    assert "Traceback (most recent call last)" in ended.stderr
