# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded policy's tokenizer: a small byte-level BPE with the Qwen3.5 special tokens.

The text is lossless: every byte has a token and nothing is normalised, so `decode(encode(text)) == text`.

Line breaks never share a token with the punctuation before them (Qwen's own pattern lets them). A chat template encodes
a whole conversation at once, `renderers` encodes it piece by piece; with this pattern both cut at the same places and
agree token for token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.trainers import BpeTrainer

VOCAB_SIZE = 4096
END_OF_TURN = "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"

PRE_TOKENS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+"
)

HIDDEN_TOKENS = (
    END_OF_TEXT,
    "<|im_start|>",
    END_OF_TURN,
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
"""Control tokens; `skip_special_tokens` drops them from text."""

VISIBLE_TOKENS = (
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Atomic tokens that stay in the text, because parsers of text look for them."""


def make_tokenizer(corpus: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Train on `corpus`; the same corpus gives the same tokenizer. The vocabulary is smaller if the corpus is."""
    specials = len(HIDDEN_TOKENS) + len(VISIBLE_TOKENS)
    if vocab_size < 256 + specials:
        raise ValueError(f"vocab_size={vocab_size} is too small: 256 bytes and {specials} special tokens must fit")
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Sequence(
        [Split(Regex(PRE_TOKENS), behavior="isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=vocab_size - specials, initial_alphabet=sorted(ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in HIDDEN_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in VISIBLE_TOKENS])
    return tokenizer


def chat_template() -> str:
    """The Jinja source of the policy's chat template."""
    return files(__package__).joinpath("chat_template.jinja").read_text(encoding="utf-8")


def save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and chat_template.jinja as `transformers` reads them."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TURN,
        "pad_token": END_OF_TEXT,
        "bos_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 131072,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (directory / "chat_template.jinja").write_text(chat_template())


def load_tokenizer(directory: Path) -> Tokenizer:
    """Read `directory`/tokenizer.json."""
    path = directory / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; give a model directory in the Hugging Face layout")
    return Tokenizer.from_file(str(path))
