# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nemo_gym_polar.policy.weights import WeightsError, read_weights, write_weights


def test_what_is_written_is_read(tmp_path: Path) -> None:
    weights = {"a": torch.randn(3, 4).t(), "b": torch.randn(2)}
    write_weights(weights, tmp_path)
    found = read_weights(tmp_path)
    assert all(torch.equal(found[name], tensor) for name, tensor in weights.items())
    assert found.keys() == weights.keys()


def test_shards_are_joined(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "one.safetensors")
    save_file({"b": torch.zeros(2)}, tmp_path / "two.safetensors")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert read_weights(tmp_path).keys() == {"a", "b"}


def test_a_directory_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"holds neither model.safetensors nor model.safetensors.index.json"):
        read_weights(tmp_path)


@pytest.mark.parametrize("damage", ["torn", "missing"])
def test_an_unreadable_file_is_named(tmp_path: Path, damage: str) -> None:
    write_weights({"a": torch.ones(1000)}, tmp_path)
    path = tmp_path / "model.safetensors"
    if damage == "torn":
        path.write_bytes(path.read_bytes()[:2000])
    else:
        path.rename(tmp_path / "moved")
        (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model.safetensors"}}')
    with pytest.raises(WeightsError, match=r"model.safetensors cannot be read: .*; write it again"):
        read_weights(tmp_path)
