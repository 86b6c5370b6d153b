# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Frames on the control pipe: one line of JSON, whose `size` says how many raw bytes follow."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False  # importing typing would cost as much as all the rest
if TYPE_CHECKING:
    from typing import Any

    Frame = tuple[dict[str, Any], bytes]

CHUNK = 1 << 16


def encode(header: dict[str, Any], payload: bytes = b"") -> bytes:
    return json.dumps({**header, "size": len(payload)}).encode() + b"\n" + payload


def send(descriptor: int, header: dict[str, Any], payload: bytes = b"") -> None:
    left = memoryview(encode(header, payload))
    while left:
        left = left[os.write(descriptor, left) :]


class Frames:
    """Cuts what arrives on a descriptor into frames."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = bytearray()

    def receive(self) -> list[Frame]:
        """Frames that one read completed; EOFError when the other end is gone."""
        data = os.read(self.descriptor, CHUNK)
        if not data:
            raise EOFError
        self.buffer += data
        frames = []
        while frame := self.cut():
            frames.append(frame)
        return frames

    def cut(self) -> Frame | None:
        end = self.buffer.find(b"\n")
        if end < 0:
            return None
        header = json.loads(self.buffer[:end])
        stop = end + 1 + header["size"]
        if len(self.buffer) < stop:
            return None
        payload = bytes(self.buffer[end + 1 : stop])
        del self.buffer[:stop]
        return header, payload
