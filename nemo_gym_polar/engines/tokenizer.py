# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A `tokenizer.json` as the tokenizer that `renderers` asks for, without transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from nemo_gym_polar.engines.encoded import EncodedTexts
from nemo_gym_polar.engines.template import ChatTemplate, template_source
from nemo_gym_polar.tokens import Int32

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MARKER = 24  # characters
_USUAL_END = "<|im_end|>"


class _LeftTexts(threading.local):
    """Texts of this thread that are still to be encoded; None where they are encoded at once."""

    texts: list[str] | None = None


class FileTokenizer:
    """The part of a Hugging Face tokenizer that rendering needs; special tokens are never added on their own.

    `markers` are the special tokens by the names that chat templates know: `bos_token`, `eos_token` and so on.
    `template` is the model's own, for a renderer that has none.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        name_or_path: str,
        markers: Mapping[str, str] | None = None,
        template: str | None = None,
    ) -> None:
        self.name_or_path = name_or_path
        self.chat_template = template
        self.unk_token_id: int | None = None
        self._markers = dict(markers or {})
        self.eos_token_id: int | None = tokenizer.token_to_id(self._markers.get("eos_token", _USUAL_END))
        added = tokenizer.get_added_tokens_decoder().values()
        self.all_special_tokens = [token.content for token in added if token.special]
        self._compiled: ChatTemplate | None = None
        self._tokenizer = tokenizer
        self._marker = lru_cache(maxsize=256)(self._encode)
        self._encoded = EncodedTexts(self._encode)
        self._left = _LeftTexts()

    @classmethod
    def load(cls, directory: str | Path) -> FileTokenizer:
        from tokenizers import Tokenizer

        path = Path(directory) / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"No tokenizer at {path}; tokens mode needs the model's tokenizer.json there.")
        tokenizer = Tokenizer.from_file(str(path))
        return cls(tokenizer, str(directory), _markers(Path(directory)), template_source(Path(directory)))

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        # Formats repeat the same few markers in every message.
        if len(text) < _MARKER:
            return list(self._marker(text))
        if self._left.texts is None:
            return self._encode(text)
        self._left.texts.append(text)
        return [-len(self._left.texts)]

    def rendered(self, render: Callable[[], list[int]], *, again: bool) -> Int32:
        """The ids that `render` makes of what this tokenizer tells it.

        Meanwhile a text is one number below 0, and its ids are put there in the end: a renderer moves ids one by one,
        several times each. `again` if the texts may come again.
        """
        texts: list[str] = []
        self._left.texts = texts
        try:
            numbers = np.array(render(), np.int32)
        finally:
            self._left.texts = None
        encode = self._encoded.ids if again else self._encoded.fresh
        places = np.flatnonzero(numbers < 0)
        pieces = [numbers[: places[0]]] if len(places) else [numbers]
        for at, end in pairwise([*places, len(numbers)]):
            pieces += [encode(texts[-numbers[at] - 1]), numbers[at + 1 : end]]
        return np.concatenate(pieces)

    def _encode(self, text: str) -> list[int]:
        # Unlike `encode`, this does not also note where in the text each token lies.
        ids: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    def decode(self, token_ids: Any, *_: Any, skip_special_tokens: bool = False, **__: Any) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self._tokenizer.token_to_id(tokens)
        return [self._tokenizer.token_to_id(token) for token in tokens]

    def apply_chat_template(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        return_dict: bool = False,
        **settings: Any,
    ) -> list[int]:
        """The conversation by the model's own template, as ids only."""
        if not tokenize or return_dict:
            raise ValueError("this tokenizer renders a conversation as a list of ids only")
        if self._compiled is None:
            self._compiled = ChatTemplate.load(Path(self.name_or_path))
        settings = {**self._markers, **settings}
        return self._encode(
            self._compiled.render(messages, tools=tools, add_generation_prompt=add_generation_prompt, **settings)
        )


def _markers(directory: Path) -> dict[str, str]:
    """What tokenizer_config.json calls its special tokens; each is text, or an object that holds it."""
    path = directory / "tokenizer_config.json"
    if not path.is_file():
        return {}
    config = orjson.loads(path.read_bytes())
    named = {key: value for key, value in config.items() if key.endswith("_token")}
    texts = {key: value.get("content") if isinstance(value, dict) else value for key, value in named.items()}
    return {key: value for key, value in texts.items() if isinstance(value, str)}
