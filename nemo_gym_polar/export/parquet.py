# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Traces as a Parquet file, one row per trace, and back. Needs the extra `parquet`.

`datasets.load_dataset("parquet", data_files=…)` reads it as it is. The schema is a promise: docs/exports.md describes
it, its version stands in the file's own metadata, and a column only ever gets added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import batched
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nemo_gym_polar.export.lines import appearing
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, SideArrays, VersionSpan

Row = tuple[Trace, Mapping[str, Any]]

VERSION = b"1"
ROWS = 64  # of a row group: long traces stay small in memory, short ones still compress well

_VERSION_SPAN = pa.struct([("version", pa.string()), ("start", pa.int32()), ("end", pa.int32())])
_SIDE = pa.struct(
    [("name", pa.string()), ("dtype", pa.string()), ("shape", pa.list_(pa.int32())), ("data", pa.binary())]
)
SCHEMA = pa.schema(
    [
        pa.field("session_id", pa.string(), nullable=False),
        pa.field("index", pa.int32(), nullable=False),
        pa.field("task_id", pa.string()),
        pa.field("sample", pa.int32()),
        pa.field("status", pa.string()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("reward", pa.float64()),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("parent", pa.int32()),
        pa.field("shared_prefix", pa.int32(), nullable=False),
        pa.field("edge", pa.string(), nullable=False),
        pa.field("group", pa.string()),
        pa.field("chain_digest", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("trained_tokens", pa.int32(), nullable=False),
        pa.field("turns", pa.list_(pa.int32()), nullable=False),
        pa.field("versions", pa.list_(_VERSION_SPAN), nullable=False),
        pa.field("token_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("loss_mask", pa.list_(pa.bool_()), nullable=False),
        pa.field("logprobs", pa.list_(pa.float32()), nullable=False),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("side", pa.list_(_SIDE)),
        pa.field("images", pa.list_(pa.string())),
    ],
    metadata={b"nemo_gym_polar.trace_schema": VERSION},
)
_SAME = (
    *("session_id", "index", "kind", "reward", "weight", "finish_reason"),
    *("parent", "shared_prefix", "group", "chain_digest"),
)


def write_parquet(path: Path, rows: Iterable[Row]) -> int:
    """Write all traces with what is known of their sessions (`task_id`, `sample`, `status`); how many there were.

    The file appears when complete.
    """
    count = 0
    with appearing(path) as part, pq.ParquetWriter(part, SCHEMA, compression="zstd") as writer:
        for group in batched(rows, ROWS):
            writer.write_table(pa.Table.from_pylist([_row(trace, about) for trace, about in group], schema=SCHEMA))
            count += len(group)
    return count


def read_parquet(path: Path) -> Iterator[Trace]:
    """The traces of a file that `write_parquet` made, equal to those written. ValueError for another schema."""
    with pq.ParquetFile(path) as file:
        version = (file.schema_arrow.metadata or {}).get(b"nemo_gym_polar.trace_schema")
        if version != VERSION:
            raise ValueError(f"{path} is not a file of traces with schema 1 (its schema: {version!r}); export it anew")
        for batch in file.iter_batches(ROWS):
            yield from map(_trace, batch.to_pylist())


def _row(trace: Trace, about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: getattr(trace, name) for name in _SAME},
        **{name: about.get(name) for name in ("task_id", "sample", "status")},
        "edge": str(trace.edge),
        "digest": trace_digest(trace),
        "tokens": len(trace),
        "trained_tokens": trace.trained_tokens,
        "turns": list(trace.turns),
        "versions": [{"version": span.version, "start": span.start, "end": span.end} for span in trace.versions],
        "token_ids": trace.token_ids,
        "loss_mask": trace.loss_mask,
        "logprobs": trace.logprobs,
        "metadata": orjson.dumps(trace.metadata).decode(),
        "side": [_side(name, rows) for name, rows in trace.side.items()],
        "images": list(trace.images),
    }


def _side(name: str, rows: NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "dtype": rows.dtype.str, "shape": list(rows.shape), "data": rows.tobytes()}


def _trace(row: Mapping[str, Any]) -> Trace:
    return Trace(
        **{name: row[name] for name in _SAME},
        edge=Edge(row["edge"]),
        turns=tuple(row["turns"]),
        versions=tuple(VersionSpan(**span) for span in row["versions"]),
        token_ids=np.array(row["token_ids"], np.int32),
        loss_mask=np.array(row["loss_mask"], np.bool_),
        logprobs=np.array(row["logprobs"], np.float32),
        metadata=orjson.loads(row["metadata"]),
        side=_sides(row.get("side") or ()),
        images=tuple(row.get("images") or ()),
    )


def _sides(found: Iterable[Mapping[str, Any]]) -> SideArrays:
    arrays = {one["name"]: np.frombuffer(one["data"], one["dtype"]).reshape(one["shape"]) for one in found}
    return arrays or NO_SIDE_ARRAYS
