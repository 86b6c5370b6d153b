# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint: a directory with all that continues a run on the very same curve. It appears whole, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from nemo_gym_polar.training.errors import TrainingError

POLICY = "policy"
OPTIMIZER = "optimizer.pt"
STATE = "state.json"


@contextmanager
def writing(directory: Path) -> Iterator[Path]:
    """Yields an empty directory that takes the place of `directory` once it is complete and on disk."""
    part = directory.with_name(f".{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    for path in part.rglob("*"):
        _to_disk(path)
    _to_disk(part)
    shutil.rmtree(directory, ignore_errors=True)
    part.rename(directory)
    _to_disk(directory.parent)


def latest(run: Path) -> Path:
    """The last complete checkpoint below `run`: a checkpoint, the directory of several, or that of a run."""
    if (run / STATE).is_file():
        return run
    found = {int(path.parent.name.removeprefix("step-")): path.parent for path in _states(run)}
    if not found:
        raise TrainingError(f"resume={run}: there is no checkpoint; give a run's directory or one of its checkpoints")
    return found[max(found)]


def write_state(directory: Path, state: Mapping[str, Any]) -> None:
    (directory / STATE).write_text(json.dumps(state, indent=2) + "\n")


def read_state(directory: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((directory / STATE).read_text())
    except (OSError, ValueError) as error:
        raise TrainingError(f"{directory / STATE} can't be read: {error}; resume from another checkpoint") from error
    return state


def read_optimizer(directory: Path, device: torch.device) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(directory / OPTIMIZER, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        raise TrainingError(f"{directory / OPTIMIZER} can't be read: {error}; resume from another one") from error
    return state


def prune(checkpoints: Path, keep: int) -> None:
    """Remove all but the last `keep` checkpoints."""
    steps = sorted(_states(checkpoints), key=lambda path: int(path.parent.name.removeprefix("step-")))
    for state in steps[: -keep or None]:
        shutil.rmtree(state.parent)


def _states(run: Path) -> list[Path]:
    return [*run.glob(f"step-*/{STATE}"), *run.glob(f"checkpoints/step-*/{STATE}")]


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
