# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The forward pass agrees with that of `transformers`: windows, full attention, chunks, tied weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.shape import DecoderShape
from nemo_gym_polar.policy.weights import WeightsError
from tests.support.policies import (
    SIZE,
    TOLERANCE,
    decoder_of,
    make_wild,
    random_tokens,
    reference,
    wild_policy,
    with_attention,
)

TOKENS = random_tokens(260)
SLIDING, FULL = "sliding_attention", "full_attention"
KINDS = [(SLIDING, SLIDING), (FULL, FULL), (SLIDING, FULL), (FULL, SLIDING), (SLIDING,) * 4]


def model_of(model: Qwen3ForCausalLM, kinds: tuple[str, ...], *, tied: bool = False) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    return make_wild(Qwen3ForCausalLM(with_attention(model.config, kinds, tied=tied)))


def continued(decoder: Decoder, prompt: int, chunk: int, steps: int) -> Tensor:
    """Log-probabilities after `prompt` tokens read in chunks, and after each of `steps` more; [1 + steps, V]."""
    cache = decoder.new_cache(2)
    field = decoder.shape.receptive_field
    first = 0 if field is None else max(0, prompt - field)
    logits = []
    for start in range(first, prompt, chunk):
        end = min(start + chunk, prompt)
        last = end == prompt
        found = decoder.prefill(cache, 0, TOKENS[start:end], start, first=first, last=last, every=False)
        assert (found is not None) == last
        logits += [] if found is None else [found]
    for position in range(prompt, prompt + steps):
        logits.append(decoder.decode(cache, [TOKENS[position]], [position]))
    return torch.log_softmax(torch.cat(logits), -1)


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "-".join(kind[0] for kind in kinds))
@pytest.mark.parametrize("chunk", [1000, 7])
@torch.inference_mode()
def test_predictions_equal_the_reference(model: Qwen3ForCausalLM, kinds: tuple[str, ...], chunk: int) -> None:
    model = model_of(model, kinds)
    decoder, expected = decoder_of(model), reference(model, TOKENS)
    for prompt in (1, 2, 11, 12, 13, 23, 24, 25, 47, 48, 49, 200):
        found = continued(decoder, prompt, chunk, steps=30)
        assert (found - expected[prompt - 1 : prompt + 30]).abs().max() < TOLERANCE


@torch.inference_mode()
def test_every_position_can_be_scored(model: Qwen3ForCausalLM, decoder: Decoder) -> None:
    cache = decoder.new_cache(1)
    chunks = [
        decoder.prefill(cache, 0, TOKENS[start : start + 50], start, first=0, last=False, every=True)
        for start in range(0, 250, 50)
    ]
    scored = torch.log_softmax(torch.cat([chunk for chunk in chunks if chunk is not None]), -1)
    assert (scored - reference(model, TOKENS[:250])).abs().max() < TOLERANCE


@torch.inference_mode()
def test_rows_do_not_mix(model: Qwen3ForCausalLM, decoder: Decoder) -> None:
    """Rows at different positions, some with a window that is not yet full, in one step."""
    cache, prompts = decoder.new_cache(4), [3, 100, 12, 40]
    for row, prompt in enumerate(prompts):
        decoder.prefill(cache, row, TOKENS[:prompt], 0, first=0, last=True, every=False)
    expected = reference(model, TOKENS)
    for step in range(30):
        positions = [prompt + step for prompt in prompts]
        logits = decoder.decode(cache, [TOKENS[position] for position in positions], positions)
        assert (torch.log_softmax(logits, -1) - expected[positions]).abs().max() < TOLERANCE


@torch.inference_mode()
def test_the_cache_of_full_attention_grows(model: Qwen3ForCausalLM) -> None:
    model = model_of(model, (FULL, FULL))
    decoder, tokens = decoder_of(model), random_tokens(1100)
    cache = decoder.new_cache(1)
    decoder.prefill(cache, 0, tokens[:1000], 0, first=0, last=True, every=False)
    steps = [decoder.decode(cache, [tokens[position]], [position]) for position in range(1000, 1100)]
    assert (torch.log_softmax(torch.cat(steps), -1) - reference(model, tokens)[1000:]).abs().max() < TOLERANCE


@torch.inference_mode()
def test_positions_far_out(tokenizer: Tokenizer) -> None:
    """Angles at position 40,000 are those of the reference to the last bit."""
    model = wild_policy(tokenizer, 1, replace(SIZE, context=40960))
    decoder = decoder_of(model)
    start = 40_000
    found = decoder.prefill(decoder.new_cache(1), 0, TOKENS[:24], start, first=start, last=True, every=False)
    ids = torch.tensor([TOKENS[:24]])
    expected = model(ids, position_ids=torch.arange(start, start + 24)[None]).logits[0, -1]
    assert found is not None
    assert (torch.log_softmax(found[0], -1) - torch.log_softmax(expected, -1)).abs().max() < TOLERANCE


@torch.inference_mode()
def test_tied_embeddings(model: Qwen3ForCausalLM) -> None:
    model = model_of(model, (SLIDING, SLIDING), tied=True)
    weights = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    decoder = decoder_of(model)
    decoder.load(weights)
    assert (continued(decoder, 30, 100, 5) - reference(model, TOKENS)[29:35]).abs().max() < TOLERANCE


@torch.inference_mode()
def test_half_the_memory_is_close(model: Qwen3ForCausalLM) -> None:
    decoder = Decoder(DecoderShape.parse(model.config.to_dict()), dtype=torch.bfloat16)
    decoder.load(dict(model.state_dict()))
    found, expected = continued(decoder, 30, 100, 20), reference(model, TOKENS)[29:50]
    assert found.dtype == torch.float32
    assert (found - expected).abs().mean() < 0.1


@torch.inference_mode()
def test_weights_are_replaced_in_place(decoder: Decoder, other_model: Qwen3ForCausalLM) -> None:
    decoder.load(dict(other_model.state_dict()))
    assert (continued(decoder, 30, 100, 5) - reference(other_model, TOKENS)[29:35]).abs().max() < TOLERANCE


@pytest.mark.parametrize("fault", ["missing", "unknown", "shape", "nan"])
@torch.inference_mode()
def test_unfit_weights_change_nothing(model: Qwen3ForCausalLM, decoder: Decoder, fault: str) -> None:
    weights = {name: tensor.clone() + 1 for name, tensor in model.state_dict().items()}
    last = "model.norm.weight"
    match fault:
        case "missing":
            del weights[last]
            message = "missing .'model.norm.weight'."
        case "unknown":
            weights["extra"] = torch.ones(1)
            message = "unknown .'extra'."
        case "shape":
            weights[last] = torch.ones(3)
            message = r"model.norm.weight has shape \(3,\), expected \(32,\)"
        case _:
            weights[last][0] = torch.nan
            message = "not finite: model.norm.weight holds NaN or infinity"
    with pytest.raises(WeightsError, match=message):
        decoder.load(weights)
    assert (continued(decoder, 30, 100, 5) - reference(model, TOKENS)[29:35]).abs().max() < TOLERANCE
