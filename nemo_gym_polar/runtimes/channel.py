# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The host's end of the control pipe: numbered requests out, answers and output back."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from nemo_gym_polar.runtimes.base import SandboxError
from nemo_gym_polar.runtimes.inside.frames import encode

if TYPE_CHECKING:
    from nemo_gym_polar.runtimes.inside.frames import Frame

Output = Callable[[str, bytes], None]


class Channel:
    """Frames over a pair of pipes. When the other end goes, every waiting call fails with `SandboxError`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.numbers = itertools.count(1)
        self.waiting: dict[int, asyncio.Future[Frame]] = {}
        self.outputs: dict[int, Output] = {}
        self.ready: asyncio.Future[Frame] = self.expect(0)
        self.task = asyncio.create_task(self.listen())

    def expect(self, number: int) -> asyncio.Future[Frame]:
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        return future

    @property
    def open(self) -> bool:
        return not self.task.done()

    async def call(
        self, operation: str, payload: bytes = b"", *, output: Output | None = None, within: float, **fields: Any
    ) -> Frame:
        """Send one request and wait for its answer; `output` receives (stream, bytes) until then."""
        if not self.open:
            raise SandboxError("the sandbox has ended")
        number = next(self.numbers)
        answer = self.expect(number)
        if output:
            self.outputs[number] = output
        try:
            self.tell(operation, payload, id=number, **fields)
            header, data = await asyncio.wait_for(answer, within)
        except TimeoutError:
            raise SandboxError(f"the sandbox did not answer «{operation}» within {within:.0f} s") from None
        finally:
            self.waiting.pop(number, None)
            self.outputs.pop(number, None)
        if "error" in header:
            raise SandboxError(f"{operation}: {header['error']}")
        return header, data

    def tell(self, operation: str, payload: bytes = b"", **fields: Any) -> None:
        """Send a request that nobody waits for."""
        if not self.writer.is_closing():
            self.writer.write(encode({"op": operation, **fields}, payload))

    async def listen(self) -> None:
        try:
            while True:
                header = orjson.loads(await self.reader.readuntil(b"\n"))
                payload = await self.reader.readexactly(header["size"])
                self.dispatch(header, payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.fail()

    def dispatch(self, header: dict[str, Any], payload: bytes) -> None:
        number = header["id"]
        if "stream" in header:
            if output := self.outputs.get(number):
                output(header["stream"], payload)
        elif (future := self.waiting.get(number)) and not future.done():
            future.set_result((header, payload))

    def fail(self) -> None:
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(SandboxError("the sandbox ended before it answered"))
                future.exception()  # taken note of: whoever waits still gets it

    async def close(self) -> None:
        """Close the request pipe, which ends the supervisor; its last frames are read to the end."""
        self.writer.close()
        await self.task
