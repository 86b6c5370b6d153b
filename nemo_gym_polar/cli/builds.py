# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions and builds of them, for the commands that work on journals."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from nemo_gym_polar.cli.errors import CommandError, UsageError
from nemo_gym_polar.cli.traces import find
from nemo_gym_polar.forest.builders import Build, Options, resolve
from nemo_gym_polar.forest.errors import BuilderError, JournalFormatError
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.recorded import RecordedSession, read_session


def settings(builder: str, options: Sequence[str]) -> dict[str, Any]:
    """The builder's settings from `name=value` each; UsageError for one that makes no sense, or no such builder."""
    config: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise UsageError(f"--option {option!r} has no value; write NAME=VALUE, such as max_tokens=4096")
        config[name] = _value(option, value)
    if ":" in builder and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # a builder of one's own lies where one works
    try:
        resolve(builder)
        Options.parse(config)
    except BuilderError as error:
        raise UsageError(str(error)) from error
    return config


def sessions(place: str, runs: Path, *, salvage: bool = False) -> Iterator[RecordedSession]:
    """The sessions that are meant, one in memory at a time. A damaged journal is an error unless it is to be salvaged;
    a torn tail is none: it was never acknowledged."""
    for path in find(place, runs):
        session = _read(path)
        if session.recovered.damage is not None and not salvage:
            raise CommandError(f"{session.recovered.damage}; --salvage takes the turns before the damage")
        yield session


def built(session: RecordedSession, builder: str, config: Mapping[str, Any]) -> Build:
    try:
        return session.build(builder, config)
    except BuilderError as error:
        raise CommandError(f"{session.journal}: {error}") from error


def _read(path: Path) -> RecordedSession:
    try:
        return read_session(path)
    except (JournalFormatError, RolloutError) as error:
        raise CommandError(str(error)) from error


def _value(option: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: what looks like a date and is none
        raise UsageError(f"--option {option!r}: the value is not YAML") from error
