# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.decoder import Decoder
from tests.support.policies import decoder_of, saved, small_tokenizer, wild_policy


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


@pytest.fixture(scope="session")
def model(tokenizer: Tokenizer) -> Qwen3ForCausalLM:
    return wild_policy(tokenizer, seed=1)


@pytest.fixture(scope="session")
def other_model(tokenizer: Tokenizer) -> Qwen3ForCausalLM:
    """The same shape with other weights: what a training step leaves."""
    return wild_policy(tokenizer, seed=2)


@pytest.fixture
def decoder(model: Qwen3ForCausalLM) -> Decoder:
    return decoder_of(model)


@pytest.fixture(scope="session")
def policy_dir(model: Qwen3ForCausalLM, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model, tokenizer, tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="session")
def other_dir(other_model: Qwen3ForCausalLM, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(other_model, tokenizer, tmp_path_factory.mktemp("other"))
