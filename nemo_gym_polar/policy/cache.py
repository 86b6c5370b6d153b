# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Keys and values of the sequences in flight.

The entry for position p of a row lies at p mod C. If every layer slides, C is the widest window and old entries are
overwritten just when no query may see them any more; otherwise C grows with the longest sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nemo_gym_polar.policy.shape import DecoderShape

_SMALLEST = 1024


@dataclass(frozen=True, slots=True)
class Step:
    """Where one decode step reads and writes. `masks` has an entry per distinct window; None hides nothing."""

    positions: Tensor  # [B]
    rows: Tensor  # [B]
    slots: Tensor  # [B]
    masks: dict[int | None, Tensor | None]  # [B, 1, 1, C]


class KeyValueCache:
    """Per layer, keys and values of shape [rows, K, C, D]."""

    def __init__(self, shape: DecoderShape, rows: int, *, device: torch.device, dtype: torch.dtype) -> None:
        self._windows = shape.windows
        self._ring = shape.window is not None
        self.length = min(shape.window or _SMALLEST, shape.context)
        self._slots = torch.arange(self.length, device=device)
        size = (shape.layers, 2, rows, shape.kv_heads, self.length, shape.head_width)
        self._entries = torch.zeros(size, device=device, dtype=dtype)

    def plan(self, positions_B: list[int]) -> Step:
        """Prepare a decode step that feeds one token at each position to the first B rows."""
        self._grow(max(positions_B) + 1)
        positions = torch.tensor(positions_B, device=self._entries.device)
        rows = torch.arange(len(positions_B), device=self._entries.device)
        slots = positions % self.length
        if self._ring and min(positions_B) >= self.length - 1 and len(set(self._windows)) == 1:
            return Step(positions, rows, slots, {self._windows[0]: None})
        age = (positions[:, None] - self._slots) % self.length
        written = age <= positions[:, None]
        masks: dict[int | None, Tensor | None] = {}
        for window in set(self._windows):
            seen = written if window is None else written & (age < window)
            masks[window] = seen[:, None, None]
        return Step(positions, rows, slots, masks)

    def write_step(self, layer: int, step: Step, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store one entry [B, K, D] per row; all keys and values of these rows, [B, K, C, D]."""
        stored = self._entries[layer]
        stored[0][step.rows, :, step.slots] = keys
        stored[1][step.rows, :, step.slots] = values
        count = len(step.rows)
        return stored[0, :count], stored[1, :count]

    def extend(
        self, layer: int, row: int, start: int, first: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Store entries [T, K, D] for positions from `start` on; `first` is the oldest position the row knows.

        Returns all keys and values that the new positions may see, [P, K, D] in order, and their positions [P].
        """
        count = len(keys)
        self._grow(start + count)
        window = self._windows[layer]
        oldest = first if window is None else max(first, start - window + 1)
        positions = torch.arange(oldest, start + count, device=keys.device)
        old = self._entries[layer, :, row][:, :, positions[: start - oldest] % self.length].transpose(1, 2)
        all_keys, all_values = torch.cat([old[0], keys]), torch.cat([old[1], values])
        kept = positions[-min(count, self.length) :]
        self._entries[layer, 0, row][:, kept % self.length] = keys[-len(kept) :].transpose(0, 1)
        self._entries[layer, 1, row][:, kept % self.length] = values[-len(kept) :].transpose(0, 1)
        return all_keys, all_values, positions

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""
        self._entries[:, :, target] = self._entries[:, :, source]

    def _grow(self, length: int) -> None:
        if self._ring or length <= self.length:
            return
        grown = max(length, 2 * self.length)
        old = self._entries
        self._entries = old.new_zeros((*old.shape[:4], grown, old.shape[5]))
        self._entries[..., : self.length, :] = old
        self.length = grown
        self._slots = torch.arange(grown, device=old.device)
