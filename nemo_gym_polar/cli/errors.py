# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The edge of every command: what a person can mend becomes one line on stderr and a non-zero exit code.

Anything else is a bug and says so, in one line as well; the traceback is shown when POLAR_DEBUG=1 is set.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NoReturn

import typer
from aiohttp import ClientError
from pydantic import BaseModel, ValidationError
from typer.exceptions import TyperException
from typer.main import get_command

from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.evaluators.base import EvaluatorError
from nemo_gym_polar.forest.errors import ForestError
from nemo_gym_polar.harnesses.base import HarnessError
from nemo_gym_polar.rollouts.client.errors import ServiceError
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import NodeError
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.runtimes.base import SandboxError
from nemo_gym_polar.tasks.task_set import TaskSetError
from nemo_gym_polar.training.errors import TrainingError

USAGE = 2
FAILED = 1
INTERRUPTED = 130

# What the world outside, or a wrong setting, makes happen. Their messages are for people.
EXPECTED = (
    OSError,
    ClientError,
    ValidationError,
    EngineError,
    EvaluatorError,
    ForestError,
    HarnessError,
    NodeError,
    RolloutError,
    SandboxError,
    ServiceError,
    StoreError,
    TaskSetError,
    TrainingError,
)


class CommandError(Exception):
    """A command can't do what was asked. The message is one line: what is wrong, and what to do about it."""

    def __init__(self, message: str, *, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """The command line or the configuration is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=USAGE)


def run(program: str, app: typer.Typer) -> NoReturn:
    """Runs the command line of `program` and exits with its code."""
    # Before torch is loaded: threads that spin while they wait starve the engine and the sandboxes.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.excepthook = _report_bug(program)
    try:
        # Not app(): that would put its own traceback printer in the place of ours.
        code = get_command(app).main(prog_name=program, standalone_mode=False)
    except CommandError as error:
        _fail(program, str(error), error.code)
    except TyperException as error:
        if not error.format_message():  # no command at all: its help has been printed
            sys.exit(USAGE)
        _fail(program, _wrong_usage(program, error), USAGE)
    except typer.Abort:
        _fail(program, "aborted", FAILED)
    except EXPECTED as error:
        if _debugging():
            raise
        _fail(program, explain(error), FAILED)
    if code == INTERRUPTED:
        _fail(program, "interrupted", INTERRUPTED)
    sys.exit(code)


def explain(error: BaseException) -> str:
    """The one line for an expected error."""
    if isinstance(error, ValidationError):
        return "; ".join(invalid_fields(error))
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        found = (error.strerror or "").removesuffix("; choose another port")
        return f"the port is taken: {found}; choose another with --port, or 0 for any free one"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk is full{f' at {error.filename}' if error.filename else ''}; free some space and resume"
    if isinstance(error, ClientError):
        return f"an HTTP call failed: {_one_line(error)}"
    return _one_line(error)


def invalid_fields(error: ValidationError) -> list[str]:
    """What pydantic refuses: `field=value: reason` each. Whole objects are not shown, they may hold secrets."""
    return [_invalid_field(item["loc"], item["input"], item["msg"]) for item in error.errors()]


def _invalid_field(place: tuple[int | str, ...], value: object, reason: str) -> str:
    reason = reason.removeprefix("Value error, ")
    field = ".".join(map(str, place))
    if isinstance(value, Mapping | BaseModel):
        return reason if reason.startswith(field) else f"{field}: {reason}"
    return f"{field}={value!r}: {reason}"


def _wrong_usage(program: str, error: TyperException) -> str:
    """With the help of the very command that was wrong."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else program
    said = error.format_message().rstrip(".").replace(": Value error, ", ": ")
    return f"{said}; try `{command} --help`"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _fail(program: str, message: str, code: int) -> NoReturn:
    print(f"{program}: error: {message}", file=sys.stderr)
    sys.exit(code)


def _debugging() -> bool:
    return os.environ.get("POLAR_DEBUG") == "1"


def _report_bug(program: str) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if _debugging():
            sys.__excepthook__(kind, error, trace)
            return
        frames = traceback.extract_tb(trace)
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        hint = "this is a bug; set POLAR_DEBUG=1 for the traceback"
        print(f"{program}: error: {kind.__name__}{where}: {_one_line(error)} ({hint})", file=sys.stderr)

    return report
