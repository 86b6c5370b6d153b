# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Cut and packed rows say the same of every trained token as the whole trace in a forward pass of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.training.forward import token_logprobs
from nemo_gym_polar.training.model_dir import load_model
from nemo_gym_polar.training.packing import Segment, pack, receptive_field, segments
from tests.support.sessions import VOCAB, make_policy, make_trace

TINY: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.2,
}
CPU = torch.device("cpu")
LAYOUTS = st.lists(
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=5).map(
        lambda stretches: [(3, False), *stretches, (2, True)]
    ),
    min_size=1,
    max_size=5,
)


@pytest.fixture(scope="module", params=[7, None], ids=["window", "full"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedModel:
    directory = make_policy(tmp_path_factory.mktemp("model"), window=request.param)
    return load_model(directory, device=CPU, attention="sdpa")


def whole(model: PreTrainedModel, trace: Trace) -> torch.Tensor:
    """The log-probability of every trained token by one plain forward pass over the complete trace."""
    ids = torch.from_numpy(trace.token_ids.astype(np.int64))
    logprobs = torch.log_softmax(model(input_ids=ids[None]).logits[0].double(), -1)
    trained = torch.from_numpy(np.flatnonzero(trace.loss_mask))
    return logprobs[trained - 1, ids[trained]]


def cut(traces: Sequence[Trace], field: int | None) -> list[Segment]:
    pieces: list[Segment] = []
    place = 0
    for trace in traces:
        pieces += segments(trace.token_ids, trace.loss_mask, field, place)
        place += trace.trained_tokens
    return pieces


@torch.no_grad()
def packed(model: PreTrainedModel, traces: Sequence[Trace], row_tokens: int, microbatch_tokens: int) -> torch.Tensor:
    found = torch.full((sum(trace.trained_tokens for trace in traces),), torch.nan)
    pieces = cut(traces, receptive_field(model.config))
    for batch in pack(pieces, row_tokens=row_tokens, microbatch_tokens=microbatch_tokens):
        found[batch.tokens_N] = token_logprobs(model, batch)[0]
    return found


@settings(max_examples=40)
@given(layouts=LAYOUTS, row_tokens=st.integers(1, 120), microbatch_tokens=st.integers(1, 300))
@torch.no_grad()
def test_packed_logprobs_are_those_of_whole_traces(
    model: PreTrainedModel, layouts: list[list[tuple[int, bool]]], row_tokens: int, microbatch_tokens: int
) -> None:
    traces = [make_trace(layout, seed=index) for index, layout in enumerate(layouts)]
    expected = torch.cat([whole(model, trace) for trace in traces])
    found = packed(model, traces, row_tokens, microbatch_tokens)
    assert torch.allclose(found.double(), expected, atol=2e-5)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**TINY),
        Gemma2Config(**TINY, sliding_window=5, final_logit_softcapping=2.0, query_pre_attn_scalar=8),
    ],
    ids=["llama", "gemma2"],
)
@torch.no_grad()
def test_other_models_keep_what_follows_their_head(config: PreTrainedConfig) -> None:
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    traces = [make_trace([(4, False), (3, True), (9, False), (2, True)], seed=seed) for seed in range(4)]
    expected = torch.cat([whole(model, trace) for trace in traces])
    assert torch.allclose(packed(model, traces, 40, 90).double(), expected, atol=2e-5)


@torch.no_grad()
def test_a_neighbour_in_the_row_changes_nothing(model: PreTrainedModel) -> None:
    trace = make_trace([(5, False), (6, True)])
    alone = packed(model, [trace], 64, 64)
    for seed in range(1, 5):
        others = [make_trace([(4, False), (seed, True)], seed=seed) for _ in range(3)]
        assert torch.allclose(packed(model, [trace, *others], 64, 64)[:6], alone, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_receptive_field_is_exact_and_no_longer_than_it_must_be(layers: int, tmp_path: Path) -> None:
    model = load_model(make_policy(tmp_path, layers=layers), device=CPU, attention="eager")
    field = receptive_field(model.config)
    assert field == layers * 6
    trace = make_trace([(90, False), (1, True)])

    def predict(ids: np.ndarray) -> torch.Tensor:
        logits: torch.Tensor = model(input_ids=torch.from_numpy(ids.astype(np.int64))[None]).logits[0, -1]
        return logits

    context = trace.token_ids[:-1]
    changed = context.copy()
    changed[: -field - 1] = (changed[: -field - 1] + 1) % VOCAB
    assert torch.equal(predict(context), predict(changed))
    changed[-field - 1] = (changed[-field - 1] + 1) % VOCAB
    assert not torch.equal(predict(context), predict(changed))


@given(LAYOUTS, st.integers(0, 30) | st.none())
def test_segments_hold_every_trained_token_once_with_all_that_it_sees(
    layouts: list[list[tuple[int, bool]]], field: int | None
) -> None:
    traces = [make_trace(layout, seed=index) for index, layout in enumerate(layouts)]
    pieces = cut(traces, field)
    tokens = np.concatenate([piece.tokens_N for piece in pieces])
    assert tokens.tolist() == list(range(sum(trace.trained_tokens for trace in traces)))
    targets = np.concatenate([piece.targets_N for piece in pieces])
    assert targets.tolist() == np.concatenate([trace.token_ids[trace.loss_mask] for trace in traces]).tolist()
    text = {trace.token_ids.tobytes() for trace in traces}
    for piece in pieces:
        assert any(piece.inputs_T.tobytes() in whole_text for whole_text in text)
        assert piece.predicting_N[-1] == len(piece) - 1
        if field is not None:
            assert piece.predicting_N[0] <= field
            assert (np.diff(piece.predicting_N) <= field + 1).all()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 80), st.integers(1, 400))
def test_packing_loses_nothing_and_keeps_to_the_budgets(lengths: list[int], row: int, budget: int) -> None:
    pieces = cut([make_trace([(length, False), (1, True)], seed=length) for length in lengths], None)
    batches = pack(pieces, row_tokens=row, microbatch_tokens=budget)
    assert sorted(torch.cat([batch.tokens_N for batch in batches]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        rows, width = batch.input_ids.shape
        assert width <= max(row, *lengths)
        assert rows == 1 or rows * width <= budget
        assert bool((batch.position_ids[:, 0] == 0).all())


def test_a_trace_of_ten_thousand_tokens_costs_what_its_end_costs(model: PreTrainedModel) -> None:
    field = receptive_field(model.config)
    pieces = cut([make_trace([(10_000, False), (5, True), (3_000, False), (5, True)])], field)
    assert [len(piece) for piece in pieces] == ([13_009] if field is None else [field + 5, field + 5])


def test_a_first_token_without_context_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss_mask\[0\]"):
        cut([make_trace([(2, True)])], None)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (LlamaConfig(), None),
        (MistralConfig(sliding_window=None), None),
        (Gemma3TextConfig(num_hidden_layers=6, sliding_window=10), None),
        (Gemma3TextConfig(num_hidden_layers=2, sliding_window=10, layer_types=["sliding_attention"] * 2), 18),
    ],
    ids=["llama", "mistral", "gemma-mixed", "gemma-sliding"],
)
def test_only_models_whose_layers_all_slide_are_cut(config: PreTrainedConfig, field: int | None) -> None:
    assert receptive_field(config) == field


@torch.no_grad()
def test_temperature_divides_the_logits(model: PreTrainedModel) -> None:
    (batch,) = pack(cut([make_trace([(4, False), (3, True)])], None), row_tokens=8, microbatch_tokens=8)
    logits = model(input_ids=batch.input_ids).logits[0]
    expected = torch.log_softmax(logits / 0.5, -1)[batch.predicting_N, batch.targets_N]
    logprobs, entropy = token_logprobs(model, batch, temperature=0.5)
    assert torch.allclose(logprobs, expected, atol=1e-5)
    distribution = torch.distributions.Categorical(logits=logits[batch.predicting_N] / 0.5)
    assert torch.allclose(entropy, distribution.entropy(), atol=1e-4)
