# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set about an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nemo_gym_polar.engines.base import Logprobs
from nemo_gym_polar.engines.families import History
from nemo_gym_polar.engines.helpers import HelperSettings

EngineKind = Literal["vllm", "embedded", "sglang", "nemo_rl", "openai"]

_RENDER_THEMSELVES = ("nemo_rl", "openai")
USUAL_LOGPROBS: Mapping[EngineKind, Logprobs] = {
    "vllm": "raw",
    "embedded": "processed",
    "sglang": "scaled",
    "nemo_rl": "processed",
    "openai": "raw",
}


class EngineSettings(BaseModel):
    """Where the engine is and how to ask it.

    `kind` is what runs at `urls`; the embedded policy speaks vLLM's API, but reports other log-probabilities. `mode` is
    `tokens` by default, and `chat` for the kinds that render themselves; `render` has a vLLM render and parse, and
    keeps contexts exact all the same. `tokenizer` is a directory that holds the model's tokenizer.json; `renderer` and
    `renderer_options` name its chat format in `renderers`. `history` is what becomes of the policy's thinking once its
    question is answered: `keep` leaves it in the context, `strip` does as the model's template does. All four are for
    tokens mode only. `logprobs` says what the engine's log-probabilities are of, if it was started to report others
    than it does by itself. `helpers` are frozen models by the alias that a harness asks for. `routed_experts` keeps,
    for SGLang in tokens mode, the experts that each token was sent to: it is how many there are per token, the model's
    layers times top-k.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    urls: tuple[str, ...]
    model: str
    kind: EngineKind = "vllm"
    mode: Literal["tokens", "chat", "render"] = "tokens"
    tokenizer: str | None = None
    renderer: str = "qwen3.5"
    renderer_options: dict[str, Any] = {}
    history: History = "strip"
    api_key: Annotated[str | None, Field(repr=False)] = None
    timeout: float = 600.0
    logprobs: Logprobs | None = None
    helpers: dict[str, HelperSettings] = {}
    routed_experts: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="before")
    @classmethod
    def _mode_of_the_kind(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("mode") is None:
            mode = "chat" if given.get("kind") in _RENDER_THEMSELVES else "tokens"
            return {**given, "mode": mode}
        return given

    @model_validator(mode="after")
    def _mode_fits_the_kind(self) -> EngineSettings:
        if self.kind == "nemo_rl" and self.mode == "tokens":
            raise ValueError("engine.mode=tokens: NeMo RL's policy server takes messages only; set engine.mode=chat")
        if self.mode == "render" and self.kind != "vllm":
            raise ValueError(
                f"engine.mode=render: only vLLM can; set engine.kind=vllm, not {self.kind}, or another mode"
            )
        if self.mode == "tokens" and not self.tokenizer:
            raise ValueError("engine.tokenizer is not set; tokens mode needs the directory of the model's tokenizer")
        if self.routed_experts and (self.kind, self.mode) != ("sglang", "tokens"):
            raise ValueError(
                f"engine.routed_experts={self.routed_experts}: only sglang in tokens mode tells them, "
                f"not {self.kind} in {self.mode} mode; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _helpers_have_names_of_their_own(self) -> EngineSettings:
        if self.model in self.helpers:
            raise ValueError(f"engine.helpers.{self.model} is the policy's own name; give the helper another alias")
        return self

    @property
    def meaning(self) -> Logprobs:
        """What the engine's log-probabilities are of."""
        return self.logprobs or USUAL_LOGPROBS[self.kind]
