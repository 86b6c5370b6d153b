# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import tempfile
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.export.parquet import ROWS, SCHEMA, read_parquet, write_parquet
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.trace import Trace
from tests.support.journals import record_session
from tests.support.traces import equal, traces

ABOUT = {"task_id": "t", "sample": 2, "status": "COMPLETED"}


@settings(deadline=None, max_examples=60)
@given(st.lists(traces(), max_size=4))
def test_traces_come_back_bit_for_bit(written: list[Trace]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "made" / "traces.parquet"
        assert write_parquet(path, [(trace, ABOUT) for trace in written]) == len(written)
        read = list(read_parquet(path))
    assert len(read) == len(written)
    assert all(map(equal, read, written))


async def test_datasets_reads_a_real_session(tmp_path: Path) -> None:
    made = build(read_journal(await record_session(tmp_path, "s1", turns=3)))
    path = tmp_path / "traces.parquet"
    write_parquet(path, [(trace, ABOUT) for trace in made.traces])
    (row,) = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    (trace,) = made.traces
    assert row["token_ids"] == trace.token_ids.tolist()
    assert row["loss_mask"] == trace.loss_mask.tolist()
    assert row["logprobs"] == trace.logprobs.tolist()
    assert [row[name] for name in ABOUT] == list(ABOUT.values())
    assert (row["tokens"], row["trained_tokens"]) == (39, 9)
    assert row["versions"][1] == {"version": "1", "start": 23, "end": 26}
    assert row["digest"] == trace_digest(trace)


async def test_many_rows_go_through_in_groups(tmp_path: Path) -> None:
    (trace,) = build(read_journal(await record_session(tmp_path, "s1", turns=1))).traces
    path = tmp_path / "traces.parquet"
    assert write_parquet(path, ((trace, {}) for _ in range(ROWS + 1))) == ROWS + 1
    with pq.ParquetFile(path) as file:
        assert file.num_row_groups == 2
    assert sum(1 for _ in read_parquet(path)) == ROWS + 1


def test_nothing_stays_of_a_file_that_was_not_finished(tmp_path: Path) -> None:
    trace = Trace("s", 0, "main", np.zeros(1, np.int32), np.zeros(1, np.bool_), np.zeros(1, np.float32), (0,))
    trace.metadata = {"set": {1}}
    with pytest.raises(TypeError):
        write_parquet(tmp_path / "traces.parquet", [(trace, {})])
    assert not list(tmp_path.iterdir())


def test_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"token_ids": [[1]]}), path)
    with pytest.raises(ValueError, match=r"other\.parquet is not a file of traces with schema 1"):
        list(read_parquet(path))


def test_the_documented_schema_is_the_schema() -> None:
    page = Path(__file__).parents[2] / "docs/exports.md"
    text = page.read_text(encoding="utf-8").partition("## Parquet")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \| `([^`]+)`( or null)? \|", text, re.MULTILINE)
    assert documented == [
        (column.name, str(column.type).replace("item: ", ""), " or null" if column.nullable else "")
        for column in SCHEMA
    ]
