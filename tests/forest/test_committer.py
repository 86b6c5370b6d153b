# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Group commit: durable, shared, honest about a disk that refuses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.committer import Committer, LogFile
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Status
from tests.forest.world import World, assistant, user


def opened(path: Path) -> LogFile:
    return LogFile(path, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 0)


@contextlib.contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let writes past `size` fail, as on a full disk: a short write first, then an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=[0.0, 0.01], ids=["no window", "window"])
def committer(request: pytest.FixtureRequest) -> Iterator[Committer]:
    committer = Committer(request.param)
    yield committer
    committer.close()


async def test_appends_are_whole_and_in_order(tmp_path: Path, committer: Committer) -> None:
    file = opened(tmp_path / "a")
    await asyncio.gather(*(committer.append(file, f"{at},".encode()) for at in range(100)))
    assert file.path.read_bytes() == "".join(f"{at}," for at in range(100)).encode()
    assert file.size == file.path.stat().st_size


async def test_what_arrives_together_is_committed_together(tmp_path: Path) -> None:
    committer = Committer(0.05)
    files = [opened(tmp_path / f"{at}") for at in range(20)]
    await asyncio.gather(*(committer.append(file, b"x") for file in files))
    assert committer.commits <= 2
    committer.close()


async def test_posts_wait_for_nobody_and_come_before_later_appends(tmp_path: Path, committer: Committer) -> None:
    file = opened(tmp_path / "a")
    committer.post(file, b"first ")
    await committer.append(file, b"second")
    assert file.path.read_bytes() == b"first second"


async def test_several_loops_share_a_committer(tmp_path: Path, committer: Committer) -> None:
    files = [opened(tmp_path / f"{at}") for at in range(3)]
    threads = [threading.Thread(target=asyncio.run, args=(committer.append(file, b"x"),)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert [file.path.read_bytes() for file in files] == [b"x"] * 3


async def test_a_waiter_that_leaves_hurts_nobody(tmp_path: Path, committer: Committer) -> None:
    file = opened(tmp_path / "a")
    waiter = asyncio.ensure_future(committer.append(file, b"a"))
    await asyncio.sleep(0)
    waiter.cancel()
    await committer.append(file, b"b")
    assert file.path.read_bytes() == b"ab"


async def test_a_closed_file_is_written_no_more(tmp_path: Path, committer: Committer) -> None:
    file = opened(tmp_path / "a")
    await committer.append(file, b"end", last=True)
    with pytest.raises(JournalError, match="the journal is closed"):
        await committer.append(file, b"more")
    assert file.path.read_bytes() == b"end"


async def test_a_full_disk_is_told_and_leaves_whole_records(tmp_path: Path, committer: Committer) -> None:
    file = opened(tmp_path / "a")
    await committer.append(file, b"0123456789")
    with no_file_beyond(15), pytest.raises(JournalError, match="can't be written"):
        await committer.append(file, b"abcdefghij")
    assert file.path.read_bytes() == b"0123456789"
    with pytest.raises(JournalError):
        await committer.append(file, b"even with room again")
    other = opened(tmp_path / "b")
    await committer.append(other, b"fine")
    assert other.path.read_bytes() == b"fine"


async def test_a_turn_that_did_not_reach_the_disk_is_not_trained(tmp_path: Path, committer: Committer) -> None:
    recorder = await Recorder.open(tmp_path / "s.journal", "s", committer)
    world = World()
    await recorder.record(recorder.match(Conversation((user("a"),))), world.generation([1], [2], assistant("x")))
    big = world.generation(list(range(9000)), [2], assistant("y"))
    with no_file_beyond(recorder.journal.size + 100), pytest.raises(JournalError):
        await recorder.record(recorder.match(Conversation((user("b"),))), big)
    assert recorder.forest[1].status is Status.FAILED
    with pytest.raises(JournalError):
        await recorder.close()
    recovered = recover(recorder.journal.path)
    assert (len(recovered.forest), recovered.torn) == (1, 0)


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(ValueError, match="commit window is -1 s"):
        Committer(-1)
