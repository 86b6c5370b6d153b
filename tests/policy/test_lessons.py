# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random

import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nemo_gym_polar.policy.lessons import Lesson, Lessons, padded, policy_renderer
from nemo_gym_polar.policy.synthetic import Chat, mixed
from tests.support.policies import small_tokenizer

TOKENIZER = small_tokenizer()
SEEDS = st.integers(0, 10_000)


def lesson(seed: int, *, reach: int = 10_000, noise: bool = False, tokenizer: Tokenizer = TOKENIZER) -> Lesson:
    return Lessons(tokenizer, reach=reach, seed=seed).batch(mixed, 1, noise=noise)[0]


def chat(seed: int) -> Chat:
    return mixed(random.Random(seed))


@given(SEEDS)
def test_what_is_learned_is_what_the_policy_says(seed: int) -> None:
    """For each turn, exactly the tokens that an engine would sample after its prompt, the end token included."""
    renderer, source = policy_renderer(TOKENIZER), chat(seed)
    said: list[int] = []
    for index, message in enumerate(source.messages):
        if message["role"] == "assistant":
            before, until = source.messages[:index], source.messages[: index + 1]
            prompt = renderer.render_ids(before, tools=source.tools, add_generation_prompt=True)
            whole = renderer.render_ids(until, tools=source.tools)
            assert whole[: len(prompt)] == prompt
            said += whole[len(prompt) : -1]  # a line break follows that nobody samples
    got = lesson(seed)
    assert got.ids_T[got.learned_T].tolist() == said


@given(SEEDS)
def test_without_noise_a_lesson_is_the_rendered_chat(seed: int) -> None:
    source = chat(seed)
    assert lesson(seed).ids_T.tolist() == policy_renderer(TOKENIZER).render_ids(source.messages, tools=source.tools)


@given(SEEDS, st.integers(1, 80))
def test_no_more_is_shown_than_the_policy_can_see(seed: int, reach: int) -> None:
    whole, cut = lesson(seed), lesson(seed, reach=reach)
    assert int(cut.learned_T.argmax()) == min(reach, int(whole.learned_T.argmax()))
    assert cut.ids_T.tolist() == whole.ids_T[-len(cut.ids_T) :].tolist()
    assert cut.learned_T.sum() == whole.learned_T.sum()


@given(SEEDS)
def test_noise_comes_before_the_chat_and_is_not_learned(seed: int) -> None:
    plain, noisy = lesson(seed), lesson(seed, noise=True)
    extra = len(noisy.ids_T) - len(plain.ids_T)
    assert noisy.ids_T[extra:].tolist() == plain.ids_T.tolist()
    assert noisy.learned_T[extra:].tolist() == plain.learned_T.tolist()
    assert not noisy.learned_T[:extra].any()
    assert not set(noisy.ids_T[:extra].tolist()) & set(TOKENIZER.get_added_tokens_decoder())


def test_a_batch_is_sorted_by_length() -> None:
    lengths = [len(one.ids_T) for one in Lessons(TOKENIZER, reach=192, seed=0).batch(mixed, 20, noise=True)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_padding_comes_last_and_is_not_learned() -> None:
    lessons = Lessons(TOKENIZER, reach=192, seed=0).batch(mixed, 5, noise=True)
    ids, learned = padded(lessons)
    assert ids.shape == learned.shape == (5, len(lessons[-1].ids_T))
    for row, one in enumerate(lessons):
        size = len(one.ids_T)
        assert torch.equal(ids[row, :size], torch.from_numpy(one.ids_T))
        assert torch.equal(learned[row, :size], torch.from_numpy(one.learned_T))
        assert not learned[row, size:].any()
