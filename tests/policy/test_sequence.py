# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary
from nemo_gym_polar.policy.sampling import Choice, SamplingParams
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.tokens import VersionSpan

END = 500


def sequence_of(tokenizer: Tokenizer, **fields: object) -> SampledSequence:
    params = SamplingParams(**{"max_tokens": 100} | fields)  # type: ignore[arg-type]  # fields of many types
    return SampledSequence([1, 2, 3], params, frozenset({END}), TextStream(Vocabulary(tokenizer)))


def feed(sequence: SampledSequence, tokens: list[int], version: str = "0") -> None:
    for token in tokens:
        if sequence.finish_reason is None:
            sequence.append(Choice(token, -1.0), version)


def spell(tokenizer: Tokenizer, text: str) -> list[int]:
    """One token per byte, so that everything spans tokens."""
    byte_of = Vocabulary(tokenizer)
    table = {byte_of.bytes_of(token): token for token in range(256)}
    return [table[bytes([byte])] for byte in text.encode()]


def test_an_end_token_stops(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer)
    feed(sequence, [5, END, 6])
    assert (sequence.finish_reason, sequence.stop_reason) == ("stop", None)
    assert [choice.token for choice in sequence.choices] == [5, END]


def test_the_length_is_bounded(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, max_tokens=2)
    feed(sequence, [5, 6, 7])
    assert sequence.finish_reason == "length"
    assert sequence.length == 5


def test_the_last_allowed_token_may_be_an_end(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, max_tokens=1)
    feed(sequence, [END])
    assert sequence.finish_reason == "stop"


def test_a_stop_token_is_named(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, stop_token_ids=frozenset({7}))
    feed(sequence, [5, 7, 8])
    assert (sequence.finish_reason, sequence.stop_reason) == ("stop", 7)


def test_ends_can_be_ignored_but_stop_tokens_not(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, ignore_end=True, stop_token_ids=frozenset({7}))
    feed(sequence, [END, END, 7])
    assert len(sequence.choices) == 3


def test_ends_are_banned_until_there_are_enough_tokens(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, min_tokens=2, stop_token_ids=frozenset({7}))
    assert set(sequence.draw.banned) == {END, 7}
    feed(sequence, [5])
    assert sequence.draw.banned
    feed(sequence, [5])
    assert not sequence.draw.banned
    feed(sequence, [END])
    assert sequence.finish_reason == "stop"


@pytest.mark.parametrize(("keep", "text"), [(False, "one "), (True, "one STOP")])
def test_a_stop_string_ends_the_text_not_the_tokens(tokenizer: Tokenizer, keep: bool, text: str) -> None:
    sequence = sequence_of(tokenizer, stop=("never", "STOP"), include_stop_text=keep)
    feed(sequence, spell(tokenizer, "one STOP two"))
    assert (sequence.finish_reason, sequence.stop_reason, sequence.text) == ("stop", "STOP", text)
    assert len(sequence.choices) == len("one STOP")
    assert sequence.view.text == text


def test_the_first_stop_string_wins(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, stop=("b", "ab"))
    feed(sequence, spell(tokenizer, "xab"))
    assert (sequence.stop_reason, sequence.text) == ("ab", "x")


@given(st.text(alphabet="abé", max_size=30), st.lists(st.text(alphabet="abé", min_size=1, max_size=4), max_size=3))
def test_text_once_shown_is_never_taken_back(tokenizer: Tokenizer, text: str, stops: list[str]) -> None:
    sequence = sequence_of(tokenizer, stop=tuple(stops), max_tokens=1000)
    shown = [sequence.view]
    for token in spell(tokenizer, text):
        feed(sequence, [token])
        shown.append(sequence.view)
    assert all(later.text.startswith(earlier.text) for earlier, later in itertools.pairwise(shown))
    cuts = [text.find(stop) for stop in stops if stop in text]
    assert (sequence.finish_reason == "stop") == bool(cuts)
    if sequence.finish_reason:
        # The answer ends with the token that completes a stop string, so a longer one may not have come to its end.
        assert sequence.text == text[: text.find(str(sequence.stop_reason))]
        assert not any(stop in sequence.text for stop in stops)


def test_half_a_character_is_shown_at_the_end(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer, max_tokens=2)
    feed(sequence, spell(tokenizer, "aé")[:2])
    assert sequence.text == "a\ufffd"


def test_versions_cover_the_samples(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer)
    feed(sequence, [5, 6], "1")
    feed(sequence, [7], "2")
    feed(sequence, [8, 9], "4")
    assert sequence.versions == [VersionSpan("1", 0, 2), VersionSpan("2", 2, 3), VersionSpan("4", 3, 5)]


def test_the_context_is_prompt_then_samples(tokenizer: Tokenizer) -> None:
    sequence = sequence_of(tokenizer)
    feed(sequence, [5, 6])
    assert [sequence.tokens_from(start) for start in (0, 2, 3, 4, 5)] == [[1, 2, 3, 5, 6], [3, 5, 6], [5, 6], [6], []]
