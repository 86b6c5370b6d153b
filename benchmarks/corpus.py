# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Text for benchmarks: Python's own library, and a tokenizer of 16,000 tokens made from it.

Made once and kept in the cache directory: seconds the first time.
"""

from __future__ import annotations

import argparse
import sys
from functools import cached_property
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from nemo_gym_polar.policy.made_once import cache_root, made_once
from nemo_gym_polar.policy.tokenizer import make_tokenizer, save_tokenizer
from nemo_gym_polar.tokens import Int32

VOCABULARY = 16_000
CHARACTERS = 2_000_000
PIECE = 20_000  # characters encoded at once


class Corpus:
    """`ids` are the tokens of the text, `ends` the character at which each ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.text = (directory / "text.txt").read_bytes().decode()
        arrays = np.load(directory / "tokens.npz")
        self.ids: Int32 = arrays["ids"]
        self.ends: Int32 = arrays["ends"]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self.directory / "tokenizer.json"))

    def passage(self, start: int, tokens: int) -> tuple[list[int], str]:
        """Tokens from `start` on, anywhere: it is counted round; and their text."""
        start %= len(self.ids) - tokens - 1
        text = self.text[self.ends[start] : self.ends[start + tokens]]
        return [int(token) for token in self.ids[start + 1 : start + tokens + 1]], text


def load() -> Corpus:
    version = "{}.{}.{}".format(*sys.version_info)
    return Corpus(made_once(cache_root() / "benchmarks" / f"corpus-2-{version}", _make))


def _make(directory: Path) -> None:
    files = sorted(Path(argparse.__file__).parent.glob("*.py"))
    text = "".join(file.read_text("utf-8") for file in files)[:CHARACTERS]
    text = text.encode("ascii", "ignore").decode().replace("\r", "")
    tokenizer = make_tokenizer([text[at : at + PIECE] for at in range(0, len(text), PIECE)], VOCABULARY)
    save_tokenizer(tokenizer, directory)
    ids, ends = [], []
    for at in range(0, len(text), PIECE):
        encoding = tokenizer.encode(text[at : at + PIECE])
        ids += encoding.ids
        ends += [at + end for _, end in encoding.offsets]
    np.savez(directory / "tokens.npz", ids=np.array(ids, np.int32), ends=np.array(ends, np.int32))
    (directory / "text.txt").write_bytes(text.encode())
