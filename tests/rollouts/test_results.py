# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.results import put, write_result
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus


def a_result(**metadata: object) -> SessionResult:
    return SessionResult(
        session_id="s", task_id="t", sample=0, status=SessionStatus.COMPLETED, metadata=dict(metadata), error=None
    )


def test_a_result_is_one_json_file(tmp_path: Path) -> None:
    write_result(tmp_path / "not" / "there" / "yet", a_result(turns=3))
    found = orjson.loads((tmp_path / "not/there/yet/sessions/s/result.json").read_bytes())
    assert (found["status"], found["metadata"]) == ("COMPLETED", {"turns": 3})


def test_what_is_written_again_is_replaced_as_a_whole(tmp_path: Path) -> None:
    put(tmp_path / "a", b"long before")
    put(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_disk_that_refuses_is_named_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("in the way")
    with pytest.raises(RolloutError, match="session s can't be written"):
        write_result(tmp_path, a_result())


# A limit on the size of files makes a write fail in its midst, as a full disk does.
FULL = """
import sys
from pathlib import Path
from nemo_gym_polar.rollouts.results import put
try:
    put(Path(sys.argv[1]), b"x" * 100_000)
except OSError as error:
    print(error.strerror)
"""


def test_a_write_that_fails_in_its_midst_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    put(tmp_path / "a", b"old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    command = [sys.executable, "-c", FULL, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert done.stdout.strip() == os.strerror(27), done.stderr
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_can_t_be_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_result(tmp_path, a_result(thing=object()))
    assert list(tmp_path.iterdir()) == []
