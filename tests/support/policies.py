# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Small policies with weights wild enough that predictions differ, and the reference that they are checked against."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.model import PolicySize, create_policy, save_policy
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.shape import DecoderShape
from nemo_gym_polar.policy.tokenizer import make_tokenizer

WINDOW = 12
SIZE = PolicySize(width=32, heads=4, kv_heads=2, head_width=8, feed_forward=48, window=WINDOW, context=4096)
TOLERANCE = 1e-4


def small_tokenizer() -> Tokenizer:
    return make_tokenizer(seed_corpus(400), vocab_size=1024)


def wild_policy(tokenizer: Tokenizer, seed: int, size: PolicySize = SIZE) -> Qwen3ForCausalLM:
    return make_wild(create_policy(tokenizer, size, seed=seed))


def make_wild(model: Qwen3ForCausalLM) -> Qwen3ForCausalLM:
    """Fresh weights predict almost evenly; larger ones make mistakes visible."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(8.0 if parameter.ndim == 2 else 1.0)
            if "norm" in name:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) / 4)
    return model.eval()


def saved(model: Qwen3ForCausalLM, tokenizer: Tokenizer, directory: Path) -> Path:
    save_policy(model, tokenizer, directory)
    return directory


def decoder_of(model: Qwen3ForCausalLM) -> Decoder:
    decoder = Decoder(DecoderShape.parse(model.config.to_dict()))
    decoder.load(dict(model.state_dict()))
    return decoder


def with_attention(config: Qwen3Config, kinds: Sequence[str], *, tied: bool = False) -> Qwen3Config:
    """The same model with full attention on some layers."""
    fields = config.to_dict() | {"layer_types": list(kinds), "num_hidden_layers": len(kinds)}
    return Qwen3Config(**fields | {"tie_word_embeddings": tied})


@torch.no_grad()
def reference(model: Qwen3ForCausalLM, tokens: Sequence[int]) -> Tensor:
    """log p(next token) after every token, [T, V], by `transformers`."""
    return torch.log_softmax(model(torch.tensor([list(tokens)])).logits[0].float(), -1)


def worst_error(model: Qwen3ForCausalLM, sequence: SampledSequence, start: int = 0, end: int | None = None) -> float:
    """The largest difference between reported logprobs of samples start to end and those of the reference."""
    expected = reference(model, sequence.tokens_from(0))
    first = len(sequence.prompt) - 1
    return max(
        abs(choice.logprob - float(expected[first + index, choice.token]))
        for index, choice in list(enumerate(sequence.choices))[start:end]
    )


def random_tokens(count: int, *, seed: int = 0, vocab: int = 500) -> list[int]:
    return random.Random(seed).choices(range(vocab), k=count)
