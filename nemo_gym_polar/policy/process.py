# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the policy server as a child process that never outlives this one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nemo_gym_polar.policy.refit import load_weights

_ANNOUNCEMENT = "listening on "
_SECONDS_TO_END = 30.0


class EngineProcessError(Exception):
    """The server did not start, or has ended."""


class EngineProcess:
    """`async with EngineProcess(directory) as engine:` serves `directory` at `engine.url`.

    The server writes what it has to say to `log`. `options` are further arguments of the server module; unless they say
    otherwise it listens on a free port of this machine only.
    """

    def __init__(
        self, directory: Path, *, log: Path | None = None, options: Sequence[str] = (), startup_seconds: float = 120.0
    ) -> None:
        self._command = (
            *(sys.executable, "-m", "nemo_gym_polar.policy.server", "--model", str(directory)),
            *("--port", "0", "--die-with", str(os.getpid()), *options),
        )
        self._log = log
        self._startup_seconds = startup_seconds
        self._process: Process | None = None
        self.url = ""

    async def __aenter__(self) -> EngineProcess:
        with contextlib.ExitStack() as stack:
            errors = DEVNULL if self._log is None else stack.enter_context(self._log.open("ab"))
            # A session of its own: Ctrl-C in the terminal reaches the trainer, which then ends this one in order.
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=DEVNULL, stdout=PIPE, stderr=errors, start_new_session=True
            )
        try:
            self.url = await asyncio.wait_for(self._announced(self._process), self._startup_seconds)
        except TimeoutError:
            await self._end()
            raise EngineProcessError(
                f"the policy server was not ready within {self._startup_seconds:g} s; {self._hint()}"
            ) from None
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Wait until the server has ended, for whatever reason; its exit status (negative: the signal)."""
        return await self._running.wait()

    async def load_weights(
        self, directory: Path, version: str, *, in_flight: Literal["wait", "abort", "keep"] = "wait"
    ) -> None:
        """Serve the weights of `directory` from now on, as `version`. See `refit.load_weights`."""
        if not self.alive:
            raise EngineProcessError(
                f"the policy server has ended with status {self._running.returncode}; {self._hint()}"
            )
        await load_weights(self.url, directory, version, in_flight=in_flight)

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise EngineProcessError("the policy server was not started; use it as an async context manager")
        return self._process

    async def _announced(self, process: Process) -> str:
        assert process.stdout is not None  # it is a pipe
        async for line in process.stdout:
            text = line.decode(errors="replace").strip()
            if text.startswith(_ANNOUNCEMENT):
                return text.removeprefix(_ANNOUNCEMENT)
        status = await process.wait()
        raise EngineProcessError(f"the policy server ended with status {status} before it was ready; {self._hint()}")

    def _hint(self) -> str:
        if self._log is None:
            return "give a log file to see why"
        return f"{self._log} ends with: {self._log.read_text(errors='replace').strip()[-500:] or '(nothing)'}"

    async def _end(self) -> None:
        """Ask it to end, then make it."""
        process = self._running
        for stop in (process.terminate, process.kill):
            if process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
