# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary


@given(st.lists(st.integers(0, 1023), max_size=30), st.booleans())
def test_token_by_token_is_all_at_once(tokenizer: Tokenizer, tokens: list[int], skip: bool) -> None:
    stream = TextStream(Vocabulary(tokenizer), skip_special=skip)
    text = "".join(stream.add(token) for token in tokens) + stream.close()
    assert text == tokenizer.decode(tokens, skip_special_tokens=skip)


@given(st.text())
def test_text_comes_in_whole_characters(tokenizer: Tokenizer, text: str) -> None:
    stream = TextStream(Vocabulary(tokenizer), skip_special=False)
    pieces = [stream.add(token) for token in tokenizer.encode(text, add_special_tokens=False).ids]
    assert "".join(pieces) == text
    assert stream.close() == ""


def test_padding_has_no_text(tokenizer: Tokenizer) -> None:
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.bytes_of(5000) == b""
    assert vocabulary.text_of(5000) == ""


def test_half_a_character_shows_as_a_replacement(tokenizer: Tokenizer) -> None:
    vocabulary = Vocabulary(tokenizer)
    half = next(token for token in range(256) if vocabulary.bytes_of(token) == b"\xc3")
    assert vocabulary.text_of(half) == "\ufffd"
    stream = TextStream(vocabulary)
    assert stream.add(half) == ""
    assert stream.close() == "\ufffd"
