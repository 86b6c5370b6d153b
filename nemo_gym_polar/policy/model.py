# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded policy's network: a Qwen3 decoder with a sliding window on every layer, in the Hugging Face layout.

With L layers of window W, a prediction depends on no more than the last L x W tokens. Sampling and training may drop
everything before them and stay exact, which makes a ten-thousand-token agent prompt as cheap as a short one.

Embeddings are untied: vLLM on a CPU does not reload tied ones correctly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from nemo_gym_polar.policy.tokenizer import END_OF_TEXT, END_OF_TURN, save_tokenizer
from nemo_gym_polar.policy.weights import WeightsError, read_weights, write_weights


@dataclass(frozen=True, slots=True)
class PolicySize:
    """Widths of a policy. `window` is in tokens; `context` is the longest sequence that may be served."""

    layers: int = 2
    width: int = 128
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 32
    feed_forward: int = 256
    window: int = 96
    context: int = 40960
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ValueError(f"policy size {name}={value} must be positive")
        if self.heads % self.kv_heads:
            raise ValueError(f"policy size heads={self.heads} must be a multiple of kv_heads={self.kv_heads}")
        if self.head_width % 2:
            raise ValueError(f"policy size head_width={self.head_width} must be even: positions rotate pairs")


SIZES = {
    "tiny": PolicySize(),
    "small": PolicySize(layers=4, width=256, heads=8, kv_heads=4, feed_forward=768, window=256),
    "medium": PolicySize(layers=8, width=512, heads=8, kv_heads=4, head_width=64, feed_forward=1536, window=512),
}
"""About 1.3 M, 5 M and 29 M parameters with a vocabulary of 4096."""


def create_policy(tokenizer: Tokenizer, size: PolicySize = SIZES["tiny"], *, seed: int = 0) -> Qwen3ForCausalLM:
    """A randomly initialised fp32 policy for `tokenizer`; the same seed gives the same weights."""
    config = policy_config(tokenizer, size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _float_model(config)


def policy_config(tokenizer: Tokenizer, size: PolicySize) -> Qwen3Config:
    """The `transformers` configuration of a policy of `size`."""
    ends = [tokenizer.token_to_id(token) for token in (END_OF_TURN, END_OF_TEXT)]
    if None in ends:
        raise ValueError(f"the tokenizer lacks {END_OF_TURN} or {END_OF_TEXT}; make it with make_tokenizer")
    return Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=size.width,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        head_dim=size.head_width,
        max_position_embeddings=size.context,
        rope_parameters={"rope_type": "default", "rope_theta": size.rope_theta},
        use_sliding_window=True,
        sliding_window=size.window,
        max_window_layers=0,
        layer_types=["sliding_attention"] * size.layers,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=[token for token in ends if token is not None],
        pad_token_id=ends[1],
    )


def save_policy(model: Qwen3ForCausalLM, tokenizer: Tokenizer, directory: Path) -> None:
    """Write a complete model directory that `transformers`, vLLM and the policy server load."""
    directory.mkdir(parents=True, exist_ok=True)
    model.config.architectures = ["Qwen3ForCausalLM"]
    model.config.save_pretrained(directory)
    GenerationConfig.from_model_config(model.config).save_pretrained(directory)
    save_tokenizer(tokenizer, directory)
    save_weights(model, directory)


def save_weights(model: Qwen3ForCausalLM, directory: Path) -> None:
    """Write only model.safetensors, in place of the one before: all that a weight update needs."""
    weights = model.state_dict()
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    write_weights(weights, directory)


def load_policy(directory: Path, *, device: str | torch.device = "cpu") -> Qwen3ForCausalLM:
    """Load any Hugging Face Qwen3 directory in fp32."""
    if not (directory / "config.json").is_file():
        raise FileNotFoundError(f"{directory / 'config.json'} is missing; give a model directory")
    config = Qwen3Config.from_pretrained(directory)
    if config.model_type != "qwen3":
        raise ValueError(f"{directory}: model_type={config.model_type!r} is not supported; give a Qwen3 model")
    model = _float_model(config)
    load_weights(model, directory)
    torch.nn.Module.to(model, torch.device(device))
    return model


def load_weights(model: Qwen3ForCausalLM, directory: Path) -> None:
    """Replace the weights of `model` with those of `directory`."""
    weights = read_weights(directory)
    if model.config.tie_word_embeddings:
        weights.setdefault("lm_head.weight", weights.get("model.embed_tokens.weight", torch.empty(0)))
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise WeightsError(f"{directory} does not fit the model: {error}") from error


def _float_model(config: Qwen3Config) -> Qwen3ForCausalLM:
    model = Qwen3ForCausalLM(config)
    torch.nn.Module.float(model)
    return model


def receptive_field(config: Qwen3Config) -> int | None:
    """How many trailing tokens a prediction can depend on (layers x window), or None if a layer attends to all."""
    kinds = config.layer_types or ["full_attention"]
    if config.sliding_window is None or any(kind != "sliding_attention" for kind in kinds):
        return None
    return int(config.num_hidden_layers) * int(config.sliding_window)
