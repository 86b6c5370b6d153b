# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.model import (
    SIZES,
    PolicySize,
    create_policy,
    load_policy,
    load_weights,
    receptive_field,
    save_policy,
    save_weights,
)
from nemo_gym_polar.policy.tokenizer import make_tokenizer
from nemo_gym_polar.policy.weights import WeightsError
from tests.support.policies import SIZE, WINDOW, random_tokens, reference, with_attention


def test_the_default_policy_is_small() -> None:
    model = create_policy(make_tokenizer(seed_corpus()))
    assert 1.2e6 < sum(parameter.numel() for parameter in model.parameters()) < 1.4e6
    assert receptive_field(model.config) == 192
    assert not model.config.tie_word_embeddings


@pytest.mark.parametrize(("name", "millions"), [("tiny", 1.34), ("small", 5.25), ("medium", 29.4)])
def test_sizes_are_what_they_say(name: str, millions: float) -> None:
    with torch.device("meta"):
        config = create_policy(make_tokenizer(["text"], 300), replace(SIZES[name])).config
        config.vocab_size = 4096
        model = Qwen3ForCausalLM(config)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)


def test_a_seed_decides_the_weights(tokenizer: Tokenizer) -> None:
    state = torch.random.get_rng_state()
    first, second, third = (create_policy(tokenizer, SIZE, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.lm_head.weight, second.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, third.lm_head.weight)
    assert torch.equal(state, torch.random.get_rng_state())


def test_only_the_receptive_field_matters(model: Qwen3ForCausalLM) -> None:
    """Two contexts that differ before the last layers x window tokens predict the same next token."""
    field = receptive_field(model.config)
    assert field == 2 * WINDOW
    tail = random_tokens(field, seed=1)
    one, other = (reference(model, random_tokens(50, seed=seed) + tail)[-1] for seed in (2, 3))
    assert torch.allclose(one, other, atol=1e-5)


def test_something_as_old_as_the_field_does_matter(model: Qwen3ForCausalLM) -> None:
    reach = 2 * (WINDOW - 1)
    tail = random_tokens(reach, seed=1)
    one, other = (reference(model, [*random_tokens(50, seed=2), token, *tail])[-1] for token in (5, 6))
    assert not torch.allclose(one, other, atol=1e-5)


def test_full_attention_has_no_receptive_field(model: Qwen3ForCausalLM) -> None:
    assert receptive_field(with_attention(model.config, ["sliding_attention", "full_attention"])) is None
    assert receptive_field(Qwen3Config(num_hidden_layers=2)) is None


def test_a_saved_policy_loads_anywhere(policy_dir: Path, model: Qwen3ForCausalLM) -> None:
    tokens = random_tokens(40)
    for loaded in (load_policy(policy_dir), AutoModelForCausalLM.from_pretrained(policy_dir)):
        assert torch.equal(reference(loaded.eval(), tokens), reference(model, tokens))
    config = json.loads((policy_dir / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert set(config["layer_types"]) == {"sliding_attention"}


def test_weights_alone_can_be_exchanged(
    tmp_path: Path, tokenizer: Tokenizer, model: Qwen3ForCausalLM, other_model: Qwen3ForCausalLM
) -> None:
    save_policy(model, tokenizer, tmp_path)
    save_weights(other_model, tmp_path)
    assert torch.equal(load_policy(tmp_path).lm_head.weight, other_model.lm_head.weight)
    assert not list(tmp_path.glob("*.part"))


def test_tied_embeddings_are_written_once(tmp_path: Path, tokenizer: Tokenizer, model: Qwen3ForCausalLM) -> None:
    tied = Qwen3ForCausalLM(with_attention(model.config, model.config.layer_types, tied=True))
    save_policy(tied, tokenizer, tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    assert torch.equal(load_policy(tmp_path).lm_head.weight, tied.lm_head.weight)


def test_weights_of_another_shape_are_refused(policy_dir: Path, tokenizer: Tokenizer) -> None:
    wider = create_policy(tokenizer, replace(SIZE, width=64))
    with pytest.raises(WeightsError, match="does not fit the model"):
        load_weights(wider, policy_dir)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(ValueError, match="model_type='llama' is not supported; give a Qwen3 model"):
        load_policy(tmp_path)


def test_an_empty_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"config.json is missing; give a model directory"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("layers", 0, "layers=0 must be positive"),
        ("window", -1, "window=-1 must be positive"),
        ("kv_heads", 3, "heads=4 must be a multiple of kv_heads=3"),
        ("head_width", 7, "head_width=7 must be even"),
    ],
)
def test_impossible_sizes_are_refused(field: str, value: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PolicySize(**{field: value})
