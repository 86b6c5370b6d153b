# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Group commit: one thread makes the appends of all sessions of a process durable.

While one commit is being written, the next one gathers; so under load many turns share one trip to the disk, and
without load a turn waits for nobody. A `window` lets a commit wait a little for company. The files of a commit are
synced side by side: the file system then writes its own journal once for many of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from nemo_gym_polar.forest.errors import JournalError

_SYNC_THREADS = 8


@dataclass(slots=True)
class LogFile:
    """An open file that only grows, to `size` bytes of whole records; after an `error` nothing more is written."""

    path: Path
    descriptor: int
    size: int
    error: JournalError | None = None


@dataclass(slots=True, eq=False)
class _Append:
    """`last` closes the file afterwards. `error` is how it ended, set by the thread."""

    file: LogFile
    data: bytes
    done: asyncio.Future[None] | None
    last: bool = False
    error: JournalError | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """How long a commit took, the bytes that it made durable, and how many appends failed."""

    seconds: float
    written: int
    failed: int


class Committer:
    """Writes and syncs. `window` is how long, in seconds, a commit waits for others to join; 0 is not at all.

    `observe` is told of each commit, in the journal's thread.
    """

    def __init__(self, window: float = 0.0, observe: Callable[[Commit], None] | None = None) -> None:
        if window < 0:
            raise ValueError(f"commit window is {window} s; it must be 0 or more")
        self.window = window
        self.commits = 0
        self._observe = observe
        self._pool = ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="journal-sync")
        self._queue: SimpleQueue[_Append | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def append(self, file: LogFile, data: bytes, *, last: bool = False) -> None:
        """Return once `data` is on disk; raise `JournalError` if it can't be. `last` then closes the file."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(_Append(file, data, done, last))
        await done

    def post(self, file: LogFile, data: bytes) -> None:
        """Write `data`, but leave it to the next `append` to sync it, and to tell if it failed."""
        self._queue.put(_Append(file, data, None))

    @property
    def queued(self) -> int:
        """Appends that no commit has taken up yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Commit what is queued and end the thread."""
        self._queue.put(None)
        self._thread.join()
        self._pool.shutdown()

    def _run(self) -> None:
        running = True
        while running:
            batch = [self._queue.get()]
            if self.window and batch[0] is not None:
                time.sleep(self.window)
            while not self._queue.empty():
                batch.append(self._queue.get())
            running = None not in batch
            if appends := [append for append in batch if append is not None]:
                self._commit(appends)

    def _commit(self, batch: list[_Append]) -> None:
        began = time.monotonic()
        by_file: dict[int, list[_Append]] = defaultdict(list)
        for append in batch:
            by_file[id(append.file)].append(append)
        for appends in by_file.values():
            _write(appends[0].file, b"".join(append.data for append in appends))
        if len(by_file) > 1:
            list(self._pool.map(_finish, by_file.values()))
        else:
            _finish(batch)
        self.commits += 1
        if self._observe is not None:
            failed = sum(append.error is not None for append in batch)
            written = sum(len(append.data) for append in batch if append.error is None)
            self._observe(Commit(time.monotonic() - began, written, failed))
        _acknowledge(batch)


def _write(file: LogFile, data: bytes) -> None:
    if file.error is not None:
        return
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file.descriptor, view) :]
    except OSError as error:
        _give_up(file, error)


def _finish(appends: list[_Append]) -> None:
    """Sync one file, if anybody waits for that, and settle its appends."""
    file = appends[0].file
    if any(append.done is not None for append in appends):
        _sync(file)
    if file.error is None:
        file.size += sum(len(append.data) for append in appends)
    for append in appends:
        append.error = file.error
    if any(append.last for append in appends):
        _close(file)


def _sync(file: LogFile) -> None:
    if file.error is not None:
        return
    try:
        os.fdatasync(file.descriptor)
    except OSError as error:
        _give_up(file, error)


def _give_up(file: LogFile, error: OSError) -> None:
    """Cut the file back to its last durable record. What the kernel kept of a failed sync is unknown: never go on."""
    reason = f"the journal can't be written ({error.strerror}); its session must end"
    file.error = JournalError(error.errno, reason, str(file.path))
    with contextlib.suppress(OSError):
        os.ftruncate(file.descriptor, file.size)


def _close(file: LogFile) -> None:
    """Here, in the only thread that writes, since a closed descriptor's number may soon be another file's."""
    os.close(file.descriptor)
    file.error = file.error or JournalError(errno.EBADF, "the journal is closed", str(file.path))


def _acknowledge(batch: list[_Append]) -> None:
    """Wake the waiters, each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Append]] = defaultdict(list)
    for append in batch:
        if append.done is not None:
            by_loop[append.done.get_loop()].append(append)
    for loop, appends in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, appends)


def _resolve(appends: list[_Append]) -> None:
    for append in appends:
        if append.done is None or append.done.done():
            continue
        if append.error is not None:
            append.done.set_exception(append.error)
        else:
            append.done.set_result(None)
