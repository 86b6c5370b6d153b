# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the records of a journal say: a turn with only its new tokens and its new messages, a mark, a session."""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import zstandard
from numpy.typing import NDArray

from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.messages import dump_message, dump_tools, load_message, load_tools
from nemo_gym_polar.forest.turn import Cause, Edge, Flag, Mark, Status, Turn
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, VersionSpan

_SIZES = struct.Struct("<II")
_LEVEL = 1


def encode_session(session_id: str, created: float, metadata: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"session_id": session_id, "created": created, "metadata": dict(metadata)})


def encode_mark(mark: Mark) -> bytes:
    return orjson.dumps([mark.turn, mark.status, mark.edge, mark.continued])


def decode_mark(payload: bytes) -> Mark:
    turn, status, edge, continued = orjson.loads(payload)
    return Mark(turn, status and Status(status), edge and Edge(edge), continued)


class TurnCodec:
    """Turns of one forest to bytes and back, in order: each carries the message nodes that it added.

    Fields are JSON, arrays are byte planes (all lowest bytes, then all second bytes, …), which compress better than
    whole numbers since the high bytes of token ids hardly vary. Both are compressed with zstd.
    """

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._nodes = len(forest.tree.nodes)

    def encode(self, turn: Turn) -> bytes:
        arrays = {"delta": turn.delta, "sampled": turn.sampled, "logprobs": turn.logprobs, **turn.side}
        fields = orjson.dumps({**_fields(turn), "nodes": self._new_nodes(), "arrays": _shapes(arrays)})
        text = _ZSTD.compressor.compress(fields)
        numbers = _ZSTD.compressor.compress(b"".join(map(_planes, arrays.values())))
        return _SIZES.pack(len(text), len(numbers)) + text + numbers

    def decode(self, payload: bytes) -> Turn:
        """Rebuild a turn and its message nodes; the turn itself is not yet in the forest."""
        size, _ = _SIZES.unpack_from(payload)
        fields = orjson.loads(_ZSTD.decompressor.decompress(payload[_SIZES.size : _SIZES.size + size]))
        arrays = _split(_ZSTD.decompressor.decompress(payload[_SIZES.size + size :]), fields.pop("arrays"))
        self._add_nodes(fields.pop("nodes"))
        return _turn(fields, arrays)

    def _new_nodes(self) -> list[Any]:
        """[parent, message] or, for a root, [None, tools], of the nodes since the last turn."""
        new = self._forest.tree.nodes[self._nodes :]
        self._nodes += len(new)
        return [
            [None, dump_tools(node.tools)]
            if node.parent is None or node.message is None
            else [node.parent.index, dump_message(node.message)]
            for node in new
        ]

    def _add_nodes(self, nodes: list[Any]) -> None:
        tree = self._forest.tree
        for parent, value in nodes:
            if parent is None:
                tree.add_root(load_tools(value))
            else:
                tree.add(tree.nodes[parent], load_message(value))
        self._nodes = len(tree.nodes)


def _fields(turn: Turn) -> dict[str, Any]:
    return {
        "index": turn.index,
        "parent": turn.parent,
        "edge": turn.edge,
        "shared": turn.shared,
        "digest": turn.digest.hex(),
        "request": turn.request,
        "answer": turn.answer,
        "cause": turn.cause,
        "drift": turn.drift,
        "status": turn.status,
        "continued": turn.continued,
        "finish_reason": turn.finish_reason,
        "versions": [[span.version, span.start, span.end] for span in turn.versions],
        "flags": sorted(turn.flags),
        "response_id": turn.response_id,
        "model": turn.model,
        "dialect": turn.dialect,
        "started": turn.started,
        "ended": turn.ended,
        "temperature": turn.temperature,
    }


def _turn(fields: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Turn:
    read = {
        "edge": Edge(fields["edge"]),
        "digest": bytes.fromhex(fields["digest"]),
        "cause": fields["cause"] and Cause(fields["cause"]),
        "drift": fields["drift"] and Cause(fields["drift"]),
        "status": Status(fields["status"]),
        "versions": tuple(VersionSpan(*span) for span in fields["versions"]),
        "flags": frozenset(map(Flag, fields["flags"])),
    }
    named = {name: arrays.pop(name) for name in ("delta", "sampled", "logprobs")}
    return Turn(**{**fields, **read, **named, "side": arrays or NO_SIDE_ARRAYS})


def _shapes(arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
    return [[name, array.dtype.str, array.shape] for name, array in arrays.items()]


def _planes(array: NDArray[Any]) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat.reshape(-1, array.itemsize).T.tobytes()


def _split(data: bytes, shapes: list[Any]) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name, dtype, shape in shapes:
        width, size = np.dtype(dtype).itemsize, math.prod(shape)
        planes = np.frombuffer(data, np.uint8, size * width, at).reshape(width, size)
        arrays[name] = np.ascontiguousarray(planes.T).view(dtype).reshape(shape)
        arrays[name].flags.writeable = False
        at += size * width
    return arrays


class _Zstd(threading.local):
    """Compression contexts are big and not thread-safe: one of each for a thread."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTD = _Zstd()
