# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.export.jsonl import decode_trace, encode_trace, read_traces, spans, write_traces
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import VersionSpan


def make(mask: list[bool], logprobs: list[float] | None = None) -> Trace:
    trained = np.array(mask, dtype=np.bool_)
    values = np.zeros(len(mask), np.float32)
    values[trained] = logprobs if logprobs is not None else -0.1
    return Trace(
        session_id="s",
        index=3,
        kind="compaction",
        token_ids=np.arange(len(mask), dtype=np.int32),
        loss_mask=trained,
        logprobs=values,
        turns=(1, 4),
        versions=(VersionSpan("7", 0, len(mask)),),
        parent=2,
        shared_prefix=5,
        edge=Edge.COMPACTION,
        group="task-1",
        chain_digest="ab12",
        finish_reason="length",
        reward=0.5,
        weight=0.25,
        metadata={"edge": "compaction"},
    )


def equal(one: Trace, other: Trace) -> bool:
    arrays = ("token_ids", "loss_mask", "logprobs")
    plain = [name for name in Trace.__slots__ if name not in arrays]
    return all(getattr(one, name) == getattr(other, name) for name in plain) and all(
        getattr(one, name).dtype == getattr(other, name).dtype
        and np.array_equal(getattr(one, name), getattr(other, name))
        for name in arrays
    )


@given(st.data())
def test_a_trace_comes_back_bit_for_bit(data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), max_size=30))
    number = st.floats(-100, 0, width=32)
    trace = make(mask, data.draw(st.lists(number, min_size=sum(mask), max_size=sum(mask))))
    line = orjson.dumps(encode_trace(trace), option=orjson.OPT_SERIALIZE_NUMPY)
    assert equal(decode_trace(orjson.loads(line)), trace)
    assert orjson.loads(line)["digest"] == trace_digest(trace)


@given(st.lists(st.booleans(), max_size=40))
def test_spans_are_the_runs_of_the_mask(mask: list[bool]) -> None:
    found = spans(np.array(mask, dtype=np.bool_))
    rebuilt = [any(start <= index < end for start, end in found) for index in range(len(mask))]
    assert rebuilt == mask
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))


def test_files_hold_one_object_a_line_with_further_keys(tmp_path: Path) -> None:
    path = tmp_path / "traces" / "step-1.jsonl"
    assert write_traces(path, [make([False, True]), (make([True]), {"advantage": -0.5})]) == 2
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [line.get("advantage") for line in lines] == [None, -0.5]
    assert lines[0]["trained"] == [[1, 2]]
    assert [len(trace) for trace in read_traces(path)] == [2, 1]
    assert [item.name for item in path.parent.iterdir()] == ["step-1.jsonl"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    write_traces(path, [make([True])])
    path.write_bytes(path.read_bytes() + b'{"token_ids": [1]}\n')
    with pytest.raises(ValueError, match="line 2 is not a trace"):
        list(read_traces(path))
