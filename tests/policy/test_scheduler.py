# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Batching never shows: every logprob is the reference's for that context, whatever runs beside it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary
from nemo_gym_polar.policy.sampling import SamplingParams
from nemo_gym_polar.policy.scheduler import Scheduler
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.weights import WeightsError
from nemo_gym_polar.tokens import VersionSpan
from tests.support.policies import TOLERANCE, decoder_of, random_tokens, reference, with_attention, worst_error

NO_END: frozenset[int] = frozenset()


class Answers:
    """Makes sequences and runs them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = Vocabulary(tokenizer)

    def make(self, prompt: int, tokens: int, seed: int = 0, **fields: object) -> SampledSequence:
        params = SamplingParams(max_tokens=tokens, seed=seed, **fields)  # type: ignore[arg-type]  # many types
        return SampledSequence(random_tokens(prompt, seed=seed), params, NO_END, TextStream(self._vocabulary))

    @staticmethod
    def run(scheduler: Scheduler, steps: int = 10_000) -> None:
        for _ in range(steps):
            if scheduler.running + scheduler.waiting == 0:
                return
            scheduler.step()


@pytest.fixture(scope="module")
def answers(tokenizer: Tokenizer) -> Answers:
    return Answers(tokenizer)


@pytest.mark.parametrize("chunk", [512, 10])
@pytest.mark.parametrize("rows", [8, 3])
def test_concurrent_answers_are_exact(
    model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers, rows: int, chunk: int
) -> None:
    """Eight at once; prompts shorter and much longer than the receptive field; they end at different times."""
    scheduler = Scheduler(decoder, rows=rows, chunk=chunk)
    lengths = [(1, 50), (24, 5), (3000, 40), (11, 31), (12, 12), (700, 3), (25, 60), (2, 1)]
    sequences = [answers.make(prompt, count, seed) for seed, (prompt, count) in enumerate(lengths)]
    for sequence in sequences:
        scheduler.add(sequence)
    answers.run(scheduler)
    for sequence, (_, count) in zip(sequences, lengths, strict=True):
        assert (len(sequence.choices), sequence.finish_reason) == (count, "length")
        assert worst_error(model, sequence) < TOLERANCE


def test_an_answer_is_the_same_alone_and_in_company(decoder: Decoder, answers: Answers) -> None:
    alone = answers.make(100, 30, seed=1)
    scheduler = Scheduler(decoder)
    scheduler.add(alone)
    answers.run(scheduler)
    together = [answers.make(100, 30, seed=seed) for seed in (0, 1, 2)]
    for sequence in together:
        scheduler.add(sequence)
    answers.run(scheduler)
    assert [choice.token for choice in together[1].choices] == [choice.token for choice in alone.choices]


def test_full_attention_models_run_too(model: Qwen3ForCausalLM, answers: Answers) -> None:
    torch.manual_seed(0)
    full = Qwen3ForCausalLM(with_attention(model.config, ["full_attention", "sliding_attention"])).eval()
    scheduler = Scheduler(decoder_of(full), chunk=64)
    sequences = [answers.make(prompt, 20, seed=prompt) for prompt in (10, 1010, 300)]
    for sequence in sequences:
        scheduler.add(sequence)
    answers.run(scheduler)
    assert max(worst_error(full, sequence) for sequence in sequences) < TOLERANCE


def test_prompts_can_be_scored(model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers) -> None:
    scheduler = Scheduler(decoder, chunk=30)
    scored = [answers.make(100, count, seed=count, prompt_logprobs=2) for count in (0, 5)]
    for sequence in scored:
        scheduler.add(sequence)
    answers.run(scheduler)
    for sequence in scored:
        expected = reference(model, sequence.prompt)
        assert [choice.token for choice in sequence.prompt_choices] == list(sequence.prompt[1:])
        for place, choice in enumerate(sequence.prompt_choices):
            assert choice.logprob == pytest.approx(float(expected[place, choice.token]), abs=TOLERANCE)
            assert choice.rank == int((expected[place] > expected[place, choice.token]).sum()) + 1
            assert choice.top[0][0] == int(expected[place].argmax())
    assert (scored[0].choices, scored[0].finish_reason) == ([], "length")


def test_greedy_answers_are_the_references(model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers) -> None:
    sequence = answers.make(40, 20, temperature=0.0)
    scheduler = Scheduler(decoder)
    scheduler.add(sequence)
    answers.run(scheduler)
    expected = reference(model, sequence.tokens_from(0)).argmax(-1).tolist()
    assert [choice.token for choice in sequence.choices] == expected[39:-1]


def test_new_weights_in_flight_are_exact_and_stamped(
    model: Qwen3ForCausalLM, other_model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers
) -> None:
    """Tokens before the update are the old policy's, tokens after it the new one's, given the whole context."""
    scheduler = Scheduler(decoder, chunk=20, version="old")
    sequences = [answers.make(prompt, 40, seed=prompt) for prompt in (5, 100, 30)]
    for sequence in sequences:
        scheduler.add(sequence)
    for _ in range(12):
        scheduler.step()
    scheduler.load(dict(other_model.state_dict()), "new")
    late = answers.make(50, 10, seed=9)
    scheduler.add(late)
    answers.run(scheduler)
    for sequence in sequences:
        old, new = sequence.versions
        assert (old.version, old.start, new.version, new.end) == ("old", 0, "new", 40)
        assert old.end == new.start > 0
        assert worst_error(model, sequence, 0, old.end) < TOLERANCE
        assert worst_error(other_model, sequence, new.start) < TOLERANCE
    assert late.versions == [VersionSpan("new", 0, 10)]


def test_a_prompt_that_is_being_scored_is_scored_anew_under_new_weights(
    other_model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers
) -> None:
    scheduler = Scheduler(decoder, chunk=20)
    sequence = answers.make(100, 5, prompt_logprobs=0)
    scheduler.add(sequence)
    scheduler.step()
    scheduler.load(dict(other_model.state_dict()))
    answers.run(scheduler)
    expected = reference(other_model, sequence.prompt)
    assert len(sequence.prompt_choices) == 99
    assert sequence.prompt_choices[0].logprob == pytest.approx(float(expected[0, sequence.prompt[1]]), abs=TOLERANCE)


def test_refused_weights_leave_all_as_it_was(model: Qwen3ForCausalLM, decoder: Decoder, answers: Answers) -> None:
    scheduler = Scheduler(decoder)
    sequence = answers.make(30, 20)
    scheduler.add(sequence)
    scheduler.step()
    with pytest.raises(WeightsError):
        scheduler.load({}, "new")
    answers.run(scheduler)
    assert sequence.versions == [VersionSpan("0", 0, 20)]
    assert worst_error(model, sequence) < TOLERANCE


def test_output_that_is_not_finite_is_an_error(decoder: Decoder, answers: Answers) -> None:
    good, bad = answers.make(30, 20, seed=1), answers.make(30, 20, seed=2)
    scheduler = Scheduler(decoder)
    scheduler.add(good)
    answers.run(scheduler)
    decoder._final_norm.fill_(torch.nan)  # what weights that pass the check could still lead to
    scheduler.add(bad)
    answers.run(scheduler)
    assert good.finish_reason == "length"
    assert bad.finish_reason == "error"
    assert "not finite" in str(bad.error)
    assert bad.choices == []


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 25), st.integers(0, 3)), min_size=1, max_size=6),
    st.data(),
)
def test_any_order_of_arrivals_aborts_and_updates_is_exact(
    model: Qwen3ForCausalLM,
    other_model: Qwen3ForCausalLM,
    answers: Answers,
    plan: list[tuple[int, int, int]],
    data: st.DataObject,
) -> None:
    """A random run: answers arrive, some are aborted, weights change. What was sampled is exact, span by span."""
    models = {"0": model, "1": other_model}
    scheduler = Scheduler(decoder_of(model), rows=3, chunk=data.draw(st.sampled_from([7, 500])))
    sequences = []
    for seed, (prompt, tokens, pause) in enumerate(plan):
        sequences.append(answers.make(prompt, tokens, seed=seed))
        scheduler.add(sequences[-1])
        for _ in range(pause):
            scheduler.step()
        if data.draw(st.booleans()):
            version = data.draw(st.sampled_from(["0", "1"]))
            scheduler.load(dict(models[version].state_dict()), version)
        if data.draw(st.booleans()):
            victim = data.draw(st.sampled_from(sequences))
            ended = victim.finish_reason is not None
            assert scheduler.abort(victim) != ended
    answers.run(scheduler)
    assert scheduler.running + scheduler.waiting == 0
    for sequence, (_, tokens, _) in zip(sequences, plan, strict=True):
        assert sequence.finish_reason == "abort" or len(sequence.choices) == tokens
        assert sum(span.end - span.start for span in sequence.versions) == len(sequence.choices)
        for span in sequence.versions:
            assert worst_error(models[span.version], sequence, span.start, span.end) < TOLERANCE


def test_everything_can_be_aborted_at_once(decoder: Decoder, answers: Answers) -> None:
    scheduler = Scheduler(decoder, rows=2, chunk=20)
    sequences = [answers.make(50, 30, seed=seed) for seed in range(4)]
    for sequence in sequences:
        scheduler.add(sequence)
    for _ in range(5):
        scheduler.step()
    ended = scheduler.abort_all()
    assert set(ended) == set(sequences)
    assert {sequence.finish_reason for sequence in sequences} == {"abort"}
    assert scheduler.running + scheduler.waiting == 0
    assert not scheduler.abort(sequences[0])


def test_nothing_is_begun_while_admission_is_off(decoder: Decoder, answers: Answers) -> None:
    scheduler = Scheduler(decoder)
    first, second = answers.make(10, 3, seed=1), answers.make(10, 3, seed=2)
    scheduler.add(first)
    scheduler.step()
    scheduler.add(second)
    for _ in range(5):
        scheduler.step(admit=False)
    assert (first.finish_reason, second.choices, scheduler.waiting) == ("length", [], 1)
