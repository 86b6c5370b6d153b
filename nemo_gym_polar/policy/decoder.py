# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The Qwen3 forward pass for sampling: plain torch operations over a fixed key-value cache, no autograd.

Written for small models, where the number of operations per token is what costs: projections that read the same input
are one matrix, and a decode step reads the cache without copying it.

Shapes: B rows, T tokens, d width, H query heads, K key-value heads, D head width, F feed-forward width, C cache length,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

from nemo_gym_polar.policy.cache import KeyValueCache
from nemo_gym_polar.policy.shape import DecoderShape
from nemo_gym_polar.policy.weights import WeightsError


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's weights, fused by input."""

    input_norm: Tensor  # [d]
    qkv: Tensor  # [(H + 2K) D, d]
    qk_norm: Tensor  # [H + K, D], one copy of the weight per head
    output: Tensor  # [d, H D]
    post_norm: Tensor  # [d]
    gate_up: Tensor  # [2 F, d]
    down: Tensor  # [d, F]


class Decoder:
    """A model's weights and its two passes: `prefill` for one row's prompt, `decode` for one token of many rows."""

    def __init__(
        self, shape: DecoderShape, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.shape = shape
        self.device = torch.device(device)
        self.dtype = dtype
        self._embedding = self._empty(shape.vocab, shape.width)
        self._final_norm = self._empty(shape.width)
        # Transposed: a row of hidden values times [d, V] is twice as fast on a CPU as times [V, d].
        self._head = self._empty(shape.width, shape.vocab)
        self._layers = [self._empty_layer() for _ in range(shape.layers)]
        self._rotations = rotations(shape).to(self.device, dtype)

    def _empty(self, *sizes: int) -> Tensor:
        return torch.zeros(sizes, device=self.device, dtype=self.dtype)

    def _empty_layer(self) -> Layer:
        s = self.shape
        queries, pairs = s.heads * s.head_width, s.kv_heads * s.head_width
        return Layer(
            input_norm=self._empty(s.width),
            qkv=self._empty(queries + 2 * pairs, s.width),
            qk_norm=self._empty(s.heads + s.kv_heads, s.head_width),
            output=self._empty(s.width, queries),
            post_norm=self._empty(s.width),
            gate_up=self._empty(2 * s.feed_forward, s.width),
            down=self._empty(s.width, s.feed_forward),
        )

    def new_cache(self, rows: int) -> KeyValueCache:
        return KeyValueCache(self.shape, rows, device=self.device, dtype=self.dtype)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Overwrite all weights in place. Checks first: on a `WeightsError` the old weights are untouched."""
        targets = self._targets()
        if self.shape.tied:
            weights = {**weights, "lm_head.weight": weights.get("model.embed_tokens.weight", torch.empty(0))}
        _check(weights, {name: tuple(shape) for name, (_, shape) in targets.items()})
        for name, (target, _) in targets.items():
            target.copy_(weights[name])

    def _targets(self) -> dict[str, tuple[Tensor, torch.Size]]:
        """For each Hugging Face name, the place to copy the tensor to and the shape it must have."""
        s = self.shape
        head = torch.Size([s.head_width])
        queries, pairs = s.heads * s.head_width, s.kv_heads * s.head_width
        places: dict[str, tuple[Tensor, torch.Size]] = {
            "model.embed_tokens.weight": (self._embedding, self._embedding.shape),
            "model.norm.weight": (self._final_norm, self._final_norm.shape),
            "lm_head.weight": (self._head.t(), self._head.t().shape),
        }
        for index, layer in enumerate(self._layers):
            q, k, v = torch.split(layer.qkv, [queries, pairs, pairs])
            gate, up = layer.gate_up.chunk(2)
            whole = {
                "input_layernorm": layer.input_norm,
                "self_attn.q_proj": q,
                "self_attn.k_proj": k,
                "self_attn.v_proj": v,
                "self_attn.o_proj": layer.output,
                "post_attention_layernorm": layer.post_norm,
                "mlp.gate_proj": gate,
                "mlp.up_proj": up,
                "mlp.down_proj": layer.down,
            }
            prefix = f"model.layers.{index}."
            places |= {f"{prefix}{name}.weight": (place, place.shape) for name, place in whole.items()}
            places[f"{prefix}self_attn.q_norm.weight"] = (layer.qk_norm[: s.heads], head)
            places[f"{prefix}self_attn.k_norm.weight"] = (layer.qk_norm[s.heads :], head)
        return places

    def decode(self, cache: KeyValueCache, tokens_B: list[int], positions_B: list[int]) -> Tensor:
        """Feed one token to each of the first B rows, at its position; the logits [B, V] of what comes next."""
        s = self.shape
        rows = len(tokens_B)
        step = cache.plan(positions_B)
        x = self._embedding[torch.tensor(tokens_B, device=self.device)]
        rotation = self._rotations[step.positions]
        for index, layer in enumerate(self._layers):
            heads = linear(self._norm(x, layer.input_norm), layer.qkv).view(rows, -1, s.head_width)
            qk = self._rotate(heads[:, : s.heads + s.kv_heads], layer, rotation)
            keys, values = cache.write_step(index, step, qk[:, s.heads :], heads[:, s.heads + s.kv_heads :])
            queries = qk[:, : s.heads].reshape(rows, s.kv_heads, -1, s.head_width)
            mixed = scaled_dot_product_attention(queries, keys, values, attn_mask=step.masks[s.windows[index]])
            x = self._finish_layer(layer, x, mixed.reshape(rows, -1))
        return self._logits(x)

    def prefill(
        self, cache: KeyValueCache, row: int, tokens_T: list[int], start: int, *, first: int, last: bool, every: bool
    ) -> Tensor | None:
        """Feed tokens at positions start, start + 1, … to `row`, whose oldest known position is `first`.

        Returns the logits after each token [T, V] if `every`, after the final one [1, V] if this chunk is the `last`
        of the prompt, else None. Work that no later logit depends on is left out.
        """
        s = self.shape
        positions = torch.arange(start, start + len(tokens_T), device=self.device)
        x = self._embedding[torch.tensor(tokens_T, device=self.device)]
        for index, layer in enumerate(self._layers):
            rotation = self._rotations[positions]
            heads = linear(self._norm(x, layer.input_norm), layer.qkv).view(len(x), -1, s.head_width)
            qk = self._rotate(heads[:, : s.heads + s.kv_heads], layer, rotation)
            keys, values, key_positions = cache.extend(
                index, row, start, first, qk[:, s.heads :], heads[:, s.heads + s.kv_heads :]
            )
            wanted = len(x) if every else self._wanted(index, len(x), last=last)
            if wanted < len(x):
                # The layers above never see these rows, and what remains covers every window that matters.
                start += len(x) - wanted
                first = start
                positions, x = positions[-wanted:], x[-wanted:]
            mask = visible(positions, key_positions, s.windows[index])
            mixed = scaled_dot_product_attention(
                qk[-wanted:, : s.heads].transpose(0, 1)[None],
                keys.transpose(0, 1)[None],
                values.transpose(0, 1)[None],
                attn_mask=mask,
                enable_gqa=True,
            )
            x = self._finish_layer(layer, x, mixed[0].transpose(0, 1).reshape(wanted, -1))
        return self._logits(x) if every or last else None

    def _wanted(self, layer: int, count: int, *, last: bool) -> int:
        """How many trailing outputs of `layer` the layers above and the final logits read."""
        above = self.shape.windows[layer + 1 :]
        if not above:
            return 1
        if not last or None in above:
            return count
        return min(count, 1 + sum(window for window in above if window is not None))

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(x, (self.shape.width,), weight, self.shape.norm_epsilon)

    def _rotate(self, heads: Tensor, layer: Layer, rotation: Tensor) -> Tensor:
        """Normalise each head and turn it by its position. heads [N, H + K, D], rotation [N, 2, D]."""
        normed = rms_norm(heads, (self.shape.head_width,), None, self.shape.norm_epsilon) * layer.qk_norm
        turned = torch.roll(normed, self.shape.head_width // 2, -1)
        return torch.addcmul(normed * rotation[:, None, 0], turned, rotation[:, None, 1])

    def _finish_layer(self, layer: Layer, x: Tensor, mixed: Tensor) -> Tensor:
        x = torch.addmm(x, mixed, layer.output.t())
        gate, up = linear(self._norm(x, layer.post_norm), layer.gate_up).chunk(2, -1)
        return torch.addmm(x, silu(gate) * up, layer.down.t())

    def _logits(self, x: Tensor) -> Tensor:
        return (self._norm(x, self._final_norm) @ self._head).float()


def rotations(shape: DecoderShape) -> Tensor:
    """cos and signed sin for every position, [context, 2, D]: rotated x = x cos + roll(x, D/2) sin.

    The angles are products in fp32, as the reference implementation computes them; computing them more exactly would
    disagree with it at large positions.
    """
    half = torch.arange(0, shape.head_width, 2, dtype=torch.int64).float() / shape.head_width
    angles = torch.arange(shape.context).float()[:, None] * (1.0 / shape.rope_theta**half)[None]
    sine = angles.sin()
    return torch.stack([angles.cos().repeat(1, 2), torch.cat([-sine, sine], -1)], 1)


def visible(query_positions: Tensor, key_positions: Tensor, window: int | None) -> Tensor:
    """Which keys each query attends to, [queries, keys]: those at or before it, at most `window` of them."""
    age = query_positions[:, None] - key_positions[None]
    return age >= 0 if window is None else (age >= 0) & (age < window)


def _check(weights: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    missing, extra = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    if missing or extra:
        raise WeightsError(f"weights do not fit the model: missing {missing[:4]}, unknown {extra[:4]}")
    for name, shape in expected.items():
        found = tuple(weights[name].shape)
        if found != shape:
            raise WeightsError(f"weights do not fit the model: {name} has shape {found}, expected {shape}")
        if not torch.isfinite(weights[name]).all():
            raise WeightsError(f"weights are not finite: {name} holds NaN or infinity; the training step diverged")
