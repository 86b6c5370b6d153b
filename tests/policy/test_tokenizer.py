# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import HIDDEN_TOKENS, VISIBLE_TOKENS, load_tokenizer, make_tokenizer

MAKE = """
import hashlib
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import make_tokenizer
print(hashlib.sha256(make_tokenizer(seed_corpus(200), 600).to_str().encode()).hexdigest())
"""


def test_the_whole_corpus_fills_the_vocabulary() -> None:
    assert make_tokenizer(seed_corpus()).get_vocab_size() == 4096


def test_the_same_corpus_gives_the_same_tokenizer() -> None:
    here = hashlib.sha256(make_tokenizer(seed_corpus(200), 600).to_str().encode()).hexdigest()
    there = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


@given(st.text())
def test_text_survives(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


@given(st.text(alphabet="ab1.!?>)\n\t é€\u0301", max_size=40), st.integers(1, 3), st.text(max_size=10))
def test_line_breaks_part_pieces(tokenizer: Tokenizer, before: str, breaks: int, after: str) -> None:
    """Text that ends in no space can be encoded apart from the line breaks that follow it."""
    before = before.rstrip()
    whole = tokenizer.encode(before + "\n" * breaks, add_special_tokens=False).ids
    apart = tokenizer.encode(before, add_special_tokens=False).ids
    assert whole == apart + tokenizer.encode("\n" * breaks, add_special_tokens=False).ids


@pytest.mark.parametrize("token", [*HIDDEN_TOKENS, *VISIBLE_TOKENS])
def test_special_tokens_are_atomic(tokenizer: Tokenizer, token: str) -> None:
    ids = tokenizer.encode(f"a{token}b", add_special_tokens=False).ids
    assert tokenizer.token_to_id(token) in ids
    shown = tokenizer.decode(ids, skip_special_tokens=True)
    assert shown == (f"a{token}b" if token in VISIBLE_TOKENS else "ab")


@pytest.fixture(scope="module")
def loaded(policy_dir: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(policy_dir)


@given(text=st.text())
def test_transformers_reads_it_alike(loaded: PreTrainedTokenizerFast, tokenizer: Tokenizer, text: str) -> None:
    assert loaded.encode(text, add_special_tokens=False) == tokenizer.encode(text, add_special_tokens=False).ids
    assert loaded.eos_token == "<|im_end|>"


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="vocab_size=100 is too small: 256 bytes and 26 special tokens"):
        make_tokenizer(["text"], vocab_size=100)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"tokenizer.json is missing; give a model directory"):
        load_tokenizer(tmp_path)
