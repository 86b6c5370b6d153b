# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Packs traces into rows for a forward pass, without a token that no trained token can see.

A layer with a sliding window of W tokens looks W - 1 tokens back, so with L such layers a prediction depends on no more
than L (W - 1) tokens before its own input. Everything earlier is cut off, exactly, and a trace whose trained tokens
lie further apart than that falls into several segments. Several segments share a row; each one's positions start at 0,
which is how `transformers` recognises packed sequences and keeps them from attending to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nemo_gym_polar.tokens import Bool, Int32

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one trace: its input tokens [T], at which of them a trained token is predicted [N] and which [N].

    `tokens_N` are the places of these tokens among all trained tokens of the batch.
    """

    inputs_T: Int32
    predicting_N: Int64
    targets_N: Int32
    tokens_N: Int64

    def __len__(self) -> int:
        return len(self.inputs_T)


@dataclass(frozen=True, slots=True)
class Microbatch:
    """The rows of one forward pass, [B, T]; `predicting_N` indexes the flattened rows, the rest is as in `Segment`."""

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    predicting_N: torch.Tensor
    targets_N: torch.Tensor
    tokens_N: torch.Tensor


def receptive_field(config: Any) -> int | None:
    """How many tokens before its own input a prediction of a `transformers` model can depend on; None if all."""
    config = config.get_text_config()
    window, kinds = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    if not window or not kinds or any(kind != "sliding_attention" for kind in kinds):
        return None
    return len(kinds) * (int(window) - 1)


def segments(token_ids: Int32, loss_mask: Bool, field: int | None, first_token: int = 0) -> Iterator[Segment]:
    """Cut a trace into segments. `first_token` is the place of its first trained token among those of the batch."""
    trained = np.flatnonzero(loss_mask)
    if not len(trained):
        return
    if trained[0] == 0:
        raise ValueError("loss_mask[0] is set: a token without context can't be trained on")
    gaps = np.diff(trained) - 1
    cuts = np.flatnonzero(gaps > (field if field is not None else len(token_ids))) + 1
    place = first_token
    for part in np.split(trained, cuts):
        start = 0 if field is None else max(0, int(part[0]) - 1 - field)
        tokens = np.arange(place, place + len(part))
        yield Segment(token_ids[start : part[-1]], part - 1 - start, token_ids[part], tokens)
        place += len(part)


def pack(
    pieces: Sequence[Segment], *, row_tokens: int, microbatch_tokens: int, device: torch.device | str = "cpu"
) -> list[Microbatch]:
    """Rows of up to `row_tokens` (a longer segment has a row of its own), as many to a microbatch as fit."""
    rows = _fill_rows(pieces, row_tokens)
    rows.sort(key=_length, reverse=True)
    batches: list[list[list[Segment]]] = []
    for row in rows:
        if not batches or (len(batches[-1]) + 1) * _length(batches[-1][0]) > microbatch_tokens:
            batches.append([])
        batches[-1].append(row)
    return [_microbatch(batch, device) for batch in batches]


def _fill_rows(pieces: Sequence[Segment], row_tokens: int) -> list[list[Segment]]:
    """First fit, longest first: at most 11/9 of the least number of rows (Johnson 1973)."""
    rows: list[list[Segment]] = []
    room: list[int] = []
    for piece in sorted(pieces, key=len, reverse=True):
        row = next((index for index, free in enumerate(room) if free >= len(piece)), None)
        if row is None:
            rows.append([])
            room.append(row_tokens)
            row = -1
        rows[row].append(piece)
        room[row] -= len(piece)
    return rows


def _length(row: list[Segment]) -> int:
    return sum(map(len, row))


def _microbatch(rows: list[list[Segment]], device: torch.device | str) -> Microbatch:
    width = _length(rows[0])
    inputs = np.zeros((len(rows), width), np.int64)
    # The padding behind a row's last segment is a segment of its own: its positions start anew.
    positions = np.tile(np.arange(width), (len(rows), 1))
    predicting, targets, tokens = [], [], []
    for index, row in enumerate(rows):
        start = 0
        for piece in row:
            end = start + len(piece)
            inputs[index, start:end] = piece.inputs_T
            positions[index, start:] = np.arange(width - start)
            predicting.append(index * width + start + piece.predicting_N)
            targets.append(piece.targets_N)
            tokens.append(piece.tokens_N)
            start = end
        positions[index, start:] = np.arange(width - start)
    arrays = inputs, positions, np.concatenate(predicting), np.concatenate(targets), np.concatenate(tokens)
    return Microbatch(*(torch.from_numpy(array.astype(np.int64)).to(device) for array in arrays))
