# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine from settings, in the mode that it should be asked in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from nemo_gym_polar.engines.base import ChatEngine, TokenEngine
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.vllm import VLLM


class EngineSettings(BaseModel):
    """Where the engine is and how to ask it.

    `tokenizer` is a directory that holds the model's tokenizer.json; `renderer` and `renderer_options` name its chat
    format in `renderers`. Both are for tokens mode only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    urls: tuple[str, ...]
    model: str
    mode: Literal["tokens", "chat"] = "tokens"
    tokenizer: str | None = None
    renderer: str = "qwen3.5"
    renderer_options: dict[str, Any] = {}
    api_key: str | None = None
    timeout: float = 600.0

    @model_validator(mode="after")
    def _tokens_mode_needs_a_tokenizer(self) -> EngineSettings:
        if self.mode == "tokens" and not self.tokenizer:
            raise ValueError("engine.tokenizer is not set; tokens mode needs the directory of the model's tokenizer")
        return self


@dataclass(frozen=True, slots=True)
class TokensMode:
    """The gateway renders and parses; contexts are exact by construction."""

    engine: TokenEngine
    rendering: Rendering


@dataclass(frozen=True, slots=True)
class ChatMode:
    """The engine renders and parses; continuations are proven afterwards."""

    engine: ChatEngine


Mode = TokensMode | ChatMode


def make_engine(settings: EngineSettings) -> Mode:
    replicas = Replicas(settings.urls, api_key=settings.api_key, timeout=settings.timeout)
    if settings.mode == "chat" or settings.tokenizer is None:
        return ChatMode(VLLM(replicas, model=settings.model))
    rendering = Rendering.load(settings.tokenizer, settings.renderer, settings.renderer_options)
    return TokensMode(VLLM(replicas, model=settings.model, stop_token_ids=rendering.stop_token_ids), rendering)
