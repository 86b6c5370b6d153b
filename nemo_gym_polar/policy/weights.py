# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the weights of a model directory, whole or in shards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

SINGLE_FILE = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"


class WeightsError(ValueError):
    """A weight file is missing, unreadable, of other shapes than the model, or not finite."""


def read_weights(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of `directory` on the CPU, by their Hugging Face names."""
    weights: dict[str, torch.Tensor] = {}
    for path in _weight_files(directory):
        try:
            weights |= load_file(path)
        except (OSError, SafetensorError) as error:
            raise WeightsError(f"{path} cannot be read: {error}; write it again") from error
    return weights


def write_weights(weights: Mapping[str, torch.Tensor], directory: Path) -> None:
    """Write model.safetensors so that a reader sees the old file or the new one, never a part."""
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = directory / (SINGLE_FILE + ".part")
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in weights.items()}
    save_file(tensors, unfinished, metadata={"format": "pt"})
    unfinished.replace(directory / SINGLE_FILE)


def _weight_files(directory: Path) -> list[Path]:
    if (directory / SINGLE_FILE).is_file():
        return [directory / SINGLE_FILE]
    index = directory / SHARD_INDEX
    if not index.is_file():
        raise WeightsError(f"{directory} holds neither {SINGLE_FILE} nor {SHARD_INDEX}; give a model directory")
    shards = set(json.loads(index.read_text())["weight_map"].values())
    return sorted(directory / shard for shard in shards)
