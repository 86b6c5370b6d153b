# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where a call's CPU time goes in the gateway: milliseconds per call by part of the code.

    python benchmarks/call_profile.py [--json] [--scenario NAME] [--calls N] [--lines N]

The gateway runs in this process, with its server, engine connection and journal; the engine is canned, the harness is
another process. After each millisecond of CPU time the main thread's stack is looked at, and the time since the last
look is booked to the innermost part of the code on it. Other threads are not looked into: they are one line. Looking
costs a little, and opening and finishing sessions is in it: how long a call takes is what `call_overhead.py` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import aiohttp
import uvloop
from call_overhead import Samples, Target, Texts, canned_answer, growing, large, serve_settings, small
from processes import ROOT, child
from tokenizers import Tokenizer

from nemo_gym_polar.gateway.standalone import serve_gateway
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import make_tokenizer, save_tokenizer

SCENARIOS = {"small": small, "large": large, "growing": growing}
INTERVAL = 0.001  # seconds of CPU time
PARTS = (
    ("/renderers/", "renderers"),
    ("engines/tokenizer.py", "tokenizer"),
    ("engines/rendering.py", "rendering"),
    ("engines/openai_wire.py", "engine request"),
    ("engines/vllm.py", "engine request"),
    ("engines/vllm_replies.py", "engine reply"),
    ("engines/replies.py", "engine reply"),
    ("/aiohttp/", "engine connection (aiohttp)"),
    ("engines/replicas.py", "engine connection (aiohttp)"),
    ("/dialects/", "dialect"),
    ("forest/record.py", "journal record"),
    ("forest/journal.py", "journal record"),
    ("forest/committer.py", "commit"),
    ("/forest/", "forest"),
    ("/prometheus_client/", "metrics"),
    ("/uvicorn/", "HTTP server (uvicorn)"),
    ("gateway/connection.py", "HTTP server (uvicorn)"),
    ("gateway/management.py", "sessions opened and finished"),
    ("/gateway/", "gateway"),
    ("/starlette/", "sessions opened and finished"),
    ("/fastapi/", "sessions opened and finished"),
    ("/asyncio/", "event loop"),
)


class Sampler:
    """CPU seconds of the main thread, by part and by line of code, from `start` to `stop`."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, float] = defaultdict(float)
        self.lines: defaultdict[str, float] = defaultdict(float)
        self._looked = 0.0

    def start(self) -> None:
        self._looked = time.thread_time()
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, _: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        spent, self._looked = now - self._looked, now
        if frame is not None:
            code = frame.f_code
            self.lines[f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}"] += spent
        self.parts[_part(frame)] += spent


def _part(frame: FrameType | None) -> str:
    while frame is not None:
        for mark, part in PARTS:
            if mark in frame.f_code.co_filename:
                return part
        frame = frame.f_back
    return "event loop"


class Parent:
    """The process that started this one, as what the scenarios measure."""

    def cpu(self) -> float:
        return _cpu(os.getppid())


def _cpu(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


async def drive(url: str, tokenizer: str, scenario: str, calls: int) -> int:
    """Be the harness; the number of calls that were made."""
    async with aiohttp.ClientSession() as client:
        target = Target("gateway", url, Parent(), client)
        found: dict[str, Samples] = await SCENARIOS[scenario](
            target, Texts(Tokenizer.from_file(tokenizer)), calls, False
        )
    return sum(len(samples.cpu) for samples in found.values())


async def _harness(url: str, tokenizer: Path, scenario: str, calls: int) -> int:
    argv = [__file__, "--drive", url, str(tokenizer), "--scenario", scenario, "--calls", str(calls)]
    process = await asyncio.create_subprocess_exec(sys.executable, *argv, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    return int(said)


async def profile(scenario: str, calls: int, lines: int) -> dict[str, dict[str, float]]:
    """Milliseconds of CPU per call: `parts`, the busiest `lines`."""
    with tempfile.TemporaryDirectory(prefix="polar-bench-") as scratch:
        directory = Path(scratch)
        tokenizer = make_tokenizer(seed_corpus(400))
        save_tokenizer(tokenizer, directory)
        answer = directory / "answer.json"
        answer.write_text(json.dumps(canned_answer(tokenizer)))
        with child(str(ROOT / "benchmarks" / "canned_engine.py"), str(answer)) as engine:
            said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            server = asyncio.create_task(serve_gateway(serve_settings(engine.first_line, directory), said.set_result))
            url = (await said).split()[2].rstrip(";")
            found = await _sampled(url, directory / "tokenizer.json", scenario, calls, lines)
            server.cancel()
            await asyncio.wait([server])
    return found


async def _sampled(url: str, tokenizer: Path, scenario: str, calls: int, lines: int) -> dict[str, dict[str, float]]:
    await _harness(url, tokenizer, "small", 20)  # warm
    sampler = Sampler()
    threads, main = _cpu(os.getpid()), time.thread_time()
    sampler.start()
    made = await _harness(url, tokenizer, scenario, calls)
    sampler.stop()
    main = time.thread_time() - main
    parts = {**sampler.parts, "other threads (journal, long prompts)": _cpu(os.getpid()) - threads - main}
    return {
        "parts": _per_call(parts, made),
        "lines": dict(list(_per_call(sampler.lines, made).items())[:lines]),
    }


def _per_call(seconds: Mapping[str, float], calls: int) -> dict[str, float]:
    """Milliseconds, the most first."""
    return {name: 1e3 * spent / calls for name, spent in sorted(seconds.items(), key=lambda item: -item[1])}


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [f"{spent:8.3f}  {name}" for name, spent in found["parts"].items()]
    total = sum(found["parts"].values())
    lines = [f"{spent:8.3f}  {name}" for name, spent in found["lines"].items()]
    return "\n".join(
        ["CPU ms per call", *rows, f"{total:8.3f}  together", *(["", "busiest lines", *lines] if lines else [])]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Where a call's CPU time goes in the gateway.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--scenario", choices=SCENARIOS, default="small", help="see call_overhead.py (%(default)s)")
    parser.add_argument("--calls", type=int, default=500, help="calls, about (%(default)s)")
    parser.add_argument("--lines", type=int, default=0, help="list as many of the busiest lines of code")
    parser.add_argument("--drive", nargs=2, metavar=("URL", "TOKENIZER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive:
        url, tokenizer = given.drive
        print(asyncio.run(drive(url, tokenizer, given.scenario, given.calls)))
        return
    found = uvloop.run(profile(given.scenario, given.calls, given.lines))
    print(json.dumps(found, indent=2) if given.json else table(found))


if __name__ == "__main__":
    main()
