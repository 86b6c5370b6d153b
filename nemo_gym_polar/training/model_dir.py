# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes a policy as a Hugging Face model directory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from nemo_gym_polar.training.errors import TrainingError

WEIGHT_FILES = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json", "*.pt", "*.part")


def load_model(directory: Path, *, device: torch.device, attention: str) -> PreTrainedModel:
    """The causal language model of `directory` in float32, without dropout: its probabilities are the engine's."""
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it without annotations
    if not (directory / "config.json").is_file():
        raise TrainingError(f"{directory}/config.json is missing; give a model directory in the Hugging Face layout")
    try:
        model: nn.Module = AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.float32, attn_implementation=attention, local_files_only=True
        )
    except (OSError, ValueError, ImportError) as error:
        raise TrainingError(f"{directory} can't be loaded: {' '.join(str(error).split())}") from error
    model.to(device).eval()
    return cast("PreTrainedModel", model)


def save_model(model: PreTrainedModel, source: Path, directory: Path) -> None:
    """Write `model` with the tokenizer, template and other files of `source`, the directory that it came from.

    The weights appear last and whole, so that an engine never reads half of them.
    """
    part = directory / ".part"
    shutil.rmtree(part, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(part)
    _copy_missing(source, directory)
    for path in sorted(part.iterdir(), key=lambda path: path.suffix == ".safetensors"):
        path.replace(directory / path.name)
    part.rmdir()


def choose_device(name: str) -> torch.device:
    """`auto` is the first GPU, or else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise TrainingError(f"trainer.device={name!r} can't be used: {str(error).splitlines()[0]}; use cpu") from error


def _copy_missing(source: Path, directory: Path) -> None:
    """Everything of `source` but weights, unless it is there already: a weight update copies nothing."""
    for path in source.iterdir():
        weights = any(path.match(pattern) for pattern in WEIGHT_FILES)
        if path.is_file() and not weights and not (directory / path.name).exists():
            shutil.copy2(path, directory / path.name)
