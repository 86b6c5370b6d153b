# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine from settings, in the mode that it should be asked in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nemo_gym_polar.engines.base import ChatEngine, Logprobs, TokenEngine
from nemo_gym_polar.engines.helpers import Helper
from nemo_gym_polar.engines.nemo_rl import NeMoRL
from nemo_gym_polar.engines.openai import OpenAI
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.settings import EngineKind, EngineSettings
from nemo_gym_polar.engines.sglang import SGLang
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.engines.vllm_render import RenderingVLLM

__all__ = ["ChatMode", "EngineSettings", "Mode", "TokensMode", "make_engine"]

Helpers = Mapping[str, Helper]
_NO_HELPERS: Helpers = MappingProxyType({})
_BOTH_MODES: dict[EngineKind, type[VLLM] | type[SGLang]] = {
    "vllm": VLLM,
    "embedded": VLLM,
    "sglang": SGLang,
    "openai": OpenAI,
}


@dataclass(frozen=True, slots=True)
class TokensMode:
    """The gateway renders and parses; contexts are exact by construction. `logprobs` says what the engine's are of."""

    engine: TokenEngine
    rendering: Rendering
    logprobs: Logprobs = "raw"
    helpers: Helpers = _NO_HELPERS


@dataclass(frozen=True, slots=True)
class ChatMode:
    """The engine renders and parses; continuations are proven afterwards."""

    engine: ChatEngine
    logprobs: Logprobs = "raw"
    helpers: Helpers = _NO_HELPERS


Mode = TokensMode | ChatMode


def make_engine(settings: EngineSettings) -> Mode:
    replicas = Replicas(settings.urls, api_key=settings.api_key, timeout=settings.timeout)
    helpers = {alias: Helper(alias, helper) for alias, helper in settings.helpers.items()}
    if settings.kind == "nemo_rl":
        return ChatMode(NeMoRL(replicas, model=settings.model), settings.meaning, helpers)
    if settings.mode == "render":
        return ChatMode(RenderingVLLM(replicas, model=settings.model), settings.meaning, helpers)
    kind = _BOTH_MODES[settings.kind]
    if settings.mode == "chat" or settings.tokenizer is None:
        return ChatMode(kind(replicas, model=settings.model), settings.meaning, helpers)
    rendering = Rendering.load(
        settings.tokenizer,
        settings.renderer,
        settings.renderer_options,
        history=settings.history,
        model=settings.model,
    )
    stops, experts = rendering.stop_token_ids, settings.routed_experts
    engine = (
        SGLang(replicas, model=settings.model, stop_token_ids=stops, routed_experts=experts)
        if kind is SGLang
        else kind(replicas, model=settings.model, stop_token_ids=stops)
    )
    return TokensMode(engine, rendering, settings.meaning, helpers)
