# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A `tokenizer.json` as the tokenizer that `renderers` asks for, without transformers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MARKER = 24  # characters


class FileTokenizer:
    """The part of a Hugging Face tokenizer that rendering needs; special tokens are never added on their own."""

    def __init__(self, tokenizer: Tokenizer, name_or_path: str) -> None:
        self.name_or_path = name_or_path
        self.unk_token_id: int | None = None
        self.eos_token_id: int | None = tokenizer.token_to_id("<|im_end|>")
        self._tokenizer = tokenizer
        self._marker = lru_cache(maxsize=256)(self._encode)

    @classmethod
    def load(cls, directory: str | Path) -> FileTokenizer:
        from tokenizers import Tokenizer

        path = Path(directory) / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"No tokenizer at {path}; tokens mode needs the model's tokenizer.json there.")
        return cls(Tokenizer.from_file(str(path)), str(directory))

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        # Formats repeat the same few markers in every message.
        return list(self._marker(text)) if len(text) < _MARKER else self._encode(text)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Any, *_: Any, skip_special_tokens: bool = False, **__: Any) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self._tokenizer.token_to_id(tokens)
        return [self._tokenizer.token_to_id(token) for token in tokens]
