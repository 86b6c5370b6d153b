# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Results on disk: `sessions/<id>/result.json` and `traces/<id>.jsonl` below the run's directory.

A trace is one line of JSON with its arrays written out. Files appear whole or not at all, traces before the result that
tells of them, and what `write_result` has written outlives the machine's power.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.side import decode_side, encode_side
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.tokens import VersionSpan

OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


def write_result(directory: Path, result: SessionResult) -> None:
    """Raises `RolloutError` if the disk refuses; what can't be JSON raises before anything is written."""
    about = summary(result)
    lines = b"".join(orjson.dumps(line, option=OPTIONS) for line in rows(result))
    try:
        if lines:
            put(directory / "traces" / f"{result.session_id}.jsonl", lines)
        put(directory / "sessions" / result.session_id / "result.json", about)
    except OSError as error:
        raise RolloutError(f"the result of session {result.session_id} can't be written: {error}") from error


def summary(result: SessionResult) -> bytes:
    """The result without arrays and messages: of each trace only its sizes."""
    fields = result.model_dump(mode="json", exclude={"traces", "conversations"})
    fields["traces"] = [
        {"kind": trace.kind, "tokens": len(trace), "trained_tokens": trace.trained_tokens, "reward": trace.reward}
        for trace in result.traces
    ]
    return orjson.dumps(fields, option=OPTIONS | orjson.OPT_INDENT_2)


def rows(result: SessionResult) -> Iterator[Mapping[str, Any]]:
    for trace, said in zip_longest(result.traces, result.conversations[: len(result.traces)]):
        yield {**row(result, trace), **({"conversation": said} if said else {})}


def without_details(result: SessionResult, why: Exception) -> SessionResult:
    """For details that are no JSON: they must not cost the tokens."""
    said = f"its details were no JSON and are left out: {why}"
    error = f"{result.error}; {said}" if result.error else said
    error = error.encode(errors="replace").decode()
    return result.model_copy(update={"metadata": {}, "conversations": [], "error": error})


def row(result: SessionResult, trace: Trace) -> Mapping[str, Any]:
    session = {"task_id": result.task_id, "sample": result.sample, "status": str(result.status)}
    arrays = {name: getattr(trace, name) for name in ("token_ids", "loss_mask", "logprobs")}
    names = ("session_id", "index", "kind", "reward", "weight", "finish_reason", "parent", "shared_prefix", "metadata")
    scalars = {name: getattr(trace, name) for name in (*names, "edge", "group", "chain_digest", "images")}
    versions = [asdict(span) for span in trace.versions]
    digest = {"digest": trace_digest(trace)}
    side = {"side": encode_side(trace.side)} if trace.side else {}
    return {**session, **scalars, "turns": list(trace.turns), "versions": versions, **digest, **arrays, **side}


def read_row(line: Mapping[str, Any]) -> Trace:
    """The trace that `row` was made of. Raises `KeyError`, `TypeError` or `ValueError`."""
    names = ("session_id", "index", "kind", "parent", "shared_prefix", "finish_reason", "reward", "weight")
    return Trace(
        **{name: line[name] for name in names},
        token_ids=np.array(line["token_ids"], np.int32),
        loss_mask=np.array(line["loss_mask"], np.bool_),
        logprobs=np.array(line["logprobs"], np.float32),
        turns=tuple(line["turns"]),
        versions=tuple(VersionSpan(**span) for span in line["versions"]),
        edge=Edge(line.get("edge", Edge.ROOT)),
        group=line.get("group"),
        chain_digest=line.get("chain_digest", ""),
        metadata=line.get("metadata", {}),
        side=decode_side(line.get("side", {})),
        images=tuple(line.get("images", ())),
    )


def put(path: Path, data: bytes) -> None:
    make_directory(path.parent)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # half a file takes up what little room there is
        raise
    sync_directory(path.parent)


def make_directory(path: Path) -> None:
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """What was made or renamed in it stays so."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
