# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from transformers import Qwen3Config

from nemo_gym_polar.policy.shape import ConfigError, DecoderShape

OLD = {
    "model_type": "qwen3",
    "hidden_act": "silu",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
}


def test_a_configuration_of_transformers_4() -> None:
    shape = DecoderShape.parse(OLD)
    assert (shape.head_width, shape.rope_theta, shape.windows) == (16, 1e6, (None,) * 4)
    assert shape.window is None
    assert shape.receptive_field is None
    assert not shape.tied


def test_a_configuration_of_transformers_5() -> None:
    config = Qwen3Config(num_hidden_layers=2, rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    shape = DecoderShape.parse(config.to_dict())
    assert (shape.rope_theta, shape.layers, shape.head_width) == (5e5, 2, 128)


def test_windows_begin_at_max_window_layers() -> None:
    sliding = {"use_sliding_window": True, "sliding_window": 100}
    assert DecoderShape.parse(OLD | sliding | {"max_window_layers": 3}).windows == (None, None, None, 100)
    everywhere = DecoderShape.parse(OLD | sliding | {"max_window_layers": 0})
    assert everywhere.receptive_field == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, "model_type='llama' is not supported; the engine runs models with 'qwen3'"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu' is not supported"),
        ({"attention_bias": True}, "attention_bias=True is not supported"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_type='yarn' is not supported; use 'default'"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries for num_hidden_layers=4"),
    ],
)
def test_other_models_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DecoderShape.parse(OLD | change)
