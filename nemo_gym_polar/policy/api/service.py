# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A loaded policy: what every endpoint works with."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from nemo_gym_polar.engines.template import ChatTemplate
from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary
from nemo_gym_polar.policy.engine import Engine
from nemo_gym_polar.policy.sampling import SamplingParams
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.shape import ConfigError, DecoderShape
from nemo_gym_polar.policy.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True)
class Markers:
    """The token ids that give an answer its structure."""

    turn_start: int
    turn_end: int
    text_end: int
    think: int
    think_end: int
    tool_call: int

    @classmethod
    def find(cls, tokenizer: Tokenizer) -> Markers:
        names = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>")
        ids = [tokenizer.token_to_id(name) for name in names]
        missing = [name for name, id_ in zip(names, ids, strict=True) if id_ is None]
        if missing:
            raise ConfigError(f"tokenizer.json lacks {', '.join(missing)}; use a Qwen3 or Qwen3.5 tokenizer")
        return cls(*[id_ for id_ in ids if id_ is not None])

    def reasoning_open(self, prompt: Sequence[int]) -> bool:
        """Whether `prompt` ends inside a think block of the turn that it opens."""
        for token in reversed(prompt):
            if token in (self.think, self.think_end, self.turn_start, self.turn_end, self.text_end):
                return token == self.think
        return False


class AnswerParser:
    """Qwen3.5's grammar of answers, from `renderers`; imported at the first chat, as it takes a second."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _renderer(self) -> Any:
        from renderers import Qwen35RendererConfig  # type: ignore[import-untyped]  # it has no py.typed
        from renderers.qwen35 import Qwen35Renderer  # type: ignore[import-untyped]  # it has no py.typed

        return Qwen35Renderer(self._tokenizer, Qwen35RendererConfig(enable_thinking=False))

    def parse(self, tokens: Sequence[int], *, prompt: Sequence[int], tools: list[dict[str, Any]]) -> Any:
        """A `renderers.ParsedResponse`."""
        return self._renderer.parse_response(list(tokens), tools=tools or None, prompt_ids=list(prompt))


@dataclass(frozen=True, slots=True)
class PolicyService:
    """The engine, with the names, limits and text functions around it."""

    engine: Engine
    directory: Path
    name: str
    limit: int
    shape: DecoderShape
    tokenizer: FileTokenizer
    vocabulary: Vocabulary
    markers: Markers
    template: ChatTemplate
    parser: AnswerParser
    end_tokens: frozenset[int]
    created: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def load(
        cls, engine: Engine, shape: DecoderShape, directory: Path, *, name: str, limit: int | None = None
    ) -> PolicyService:
        """Read the texts of `directory` around an `engine` that holds its weights."""
        if limit is not None and not 0 < limit <= shape.context:
            raise ConfigError(f"max_model_len={limit} does not fit the model; give 1 to {shape.context}")
        tokenizer = load_tokenizer(directory)
        file_tokenizer = FileTokenizer(tokenizer, str(directory))
        return cls(
            engine=engine,
            directory=directory,
            name=name,
            limit=limit or shape.context,
            shape=shape,
            tokenizer=file_tokenizer,
            vocabulary=Vocabulary(tokenizer),
            markers=Markers.find(tokenizer),
            template=ChatTemplate.load(directory),
            parser=AnswerParser(file_tokenizer),
            end_tokens=_end_tokens(directory),
        )

    def check_model(self, fields: Fields) -> None:
        """Refuse a request for another model; one that names none is for this."""
        asked = fields.text("model")
        if asked is not None and asked not in (self.name, str(self.directory)):
            raise ApiError(f"The model `{asked}` does not exist; ask for `{self.name}`.", status=404, param="model")

    def sequences(
        self, prompt: Sequence[int], params: SamplingParams, count: int, *, skip_special: bool
    ) -> list[SampledSequence]:
        """`count` answers to one prompt; with a seed each draws from a stream of its own."""
        seeds = [None if params.seed is None else params.seed + number for number in range(count)]
        return [
            SampledSequence(
                prompt,
                replace(params, seed=seed),
                self.end_tokens,
                TextStream(self.vocabulary, skip_special=skip_special),
            )
            for seed in seeds
        ]


def _end_tokens(directory: Path) -> frozenset[int]:
    """The ids that end an answer, from generation_config.json or else config.json."""
    for name in ("generation_config.json", "config.json"):
        path = directory / name
        found: Any = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id") if path.is_file() else None
        if found is not None:
            return frozenset([found] if isinstance(found, int) else found)
    raise ConfigError(f"{directory}: no eos_token_id in generation_config.json or config.json; add one")
