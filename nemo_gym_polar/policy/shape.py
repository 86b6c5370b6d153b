# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the sampler must know of a model: the fields of a Hugging Face Qwen3 config.json, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ConfigError(ValueError):
    """The model directory describes a model that the sampler cannot run."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """Widths of a Qwen3 decoder. `windows` has one entry per layer: its sliding window, or None for full attention."""

    vocab: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_width: int
    windows: tuple[int | None, ...]
    context: int
    rope_theta: float
    norm_epsilon: float
    tied: bool

    @property
    def layers(self) -> int:
        return len(self.windows)

    @property
    def window(self) -> int | None:
        """The widest window, or None if any layer sees everything."""
        widest = 0
        for window in self.windows:
            if window is None:
                return None
            widest = max(widest, window)
        return widest

    @property
    def receptive_field(self) -> int | None:
        """No prediction depends on more than this many trailing tokens; None: it depends on all of them."""
        return None if self.window is None else self.layers * self.window

    @classmethod
    def load(cls, directory: Path) -> DecoderShape:
        path = directory / "config.json"
        if not path.is_file():
            raise ConfigError(f"{path} is missing; give a model directory in the Hugging Face layout")
        return cls.parse(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> DecoderShape:
        """Read a decoded config.json, as transformers 4 or 5 writes it."""
        _require(config, "model_type", "qwen3")
        _require(config, "hidden_act", "silu")
        _require(config, "attention_bias", False, missing=False)
        heads = config["num_attention_heads"]
        return cls(
            vocab=config["vocab_size"],
            width=config["hidden_size"],
            feed_forward=config["intermediate_size"],
            heads=heads,
            kv_heads=config["num_key_value_heads"],
            head_width=config.get("head_dim") or config["hidden_size"] // heads,
            windows=_windows(config),
            context=config["max_position_embeddings"],
            rope_theta=_rope_theta(config),
            norm_epsilon=config["rms_norm_eps"],
            tied=config.get("tie_word_embeddings", False),
        )


def _require(config: Mapping[str, Any], field: str, value: object, *, missing: object = None) -> None:
    found = config.get(field, missing)
    if found != value:
        raise ConfigError(f"config.json: {field}={found!r} is not supported; the engine runs models with {value!r}")


def _rope_theta(config: Mapping[str, Any]) -> float:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", "default")
    if kind != "default":
        raise ConfigError(f"config.json: rope_type={kind!r} is not supported; use 'default'")
    return float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0)


def _windows(config: Mapping[str, Any]) -> tuple[int | None, ...]:
    layers = config["num_hidden_layers"]
    window = config.get("sliding_window") if config.get("use_sliding_window") else None
    kinds = config.get("layer_types")
    if kinds is None:
        first = config.get("max_window_layers", layers)
        kinds = ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
    if len(kinds) != layers:
        raise ConfigError(f"config.json: layer_types has {len(kinds)} entries for num_hidden_layers={layers}")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
