# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the embedded engine is: `python benchmarks/engine_speed.py [--size tiny] [--threads 1]`.

Measures a fresh server process over HTTP: tokens per second, time to the first token, processor time per token (which,
unlike the others, does not depend on what else runs on the machine), resident memory, and the time of a weight update.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.model import SIZES, create_policy, save_policy, save_weights
from nemo_gym_polar.policy.process import EngineProcess
from nemo_gym_polar.policy.tokenizer import make_tokenizer

CASES = [(streams, prompt) for prompt in (200, 2000, 8000) for streams in (1, 8)]
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds to the first and to the last token, from the moment of asking."""

    first: float
    last: float
    tokens: int


async def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        directory, tokenizer = Path(name), make_tokenizer(seed_corpus())
        model = create_policy(tokenizer, SIZES[options.size])
        save_policy(model, tokenizer, directory)
        started = time.perf_counter()
        async with EngineProcess(directory, options=["--threads", str(options.threads)]) as engine:
            print(f"start {time.perf_counter() - started:.1f} s; load {psutil.getloadavg()[0]:.1f}")
            process = psutil.Process(engine.pid)
            async with aiohttp.ClientSession(engine.url) as session:
                await ask(session, 200, 50)
                print(f"{'streams':>7} {'prompt':>6} {'tok/s':>7} {'CPU µs/tok':>10} {'TTFT ms':>8} {'last TTFT':>9}")
                for streams, prompt in CASES:
                    print(await case(session, process, streams, prompt, options.tokens))
            reloads = [await reload(engine, model, directory, version) for version in range(10)]
            written = statistics.median(save for save, _ in reloads)
            loaded = statistics.median(load for _, load in reloads)
            print(f"weights: {written:.1f} ms to write, {loaded:.1f} ms to load (pause, reload, resume)")
            print(f"resident memory: {process.memory_info().rss / MEGABYTE:.0f} MiB")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=500, help="to sample per answer (%(default)s)")
    return parser.parse_args()


async def case(session: aiohttp.ClientSession, process: psutil.Process, streams: int, prompt: int, tokens: int) -> str:
    """One row: throughput of whole answers, then the latency of streamed ones."""
    before, started = cpu_seconds(process), time.perf_counter()
    await asyncio.gather(*[ask(session, prompt, tokens) for _ in range(streams)])
    seconds, cpu = time.perf_counter() - started, cpu_seconds(process) - before
    answers = await asyncio.gather(*[ask(session, prompt, 20, stream=True) for _ in range(streams)])
    sampled, firsts = streams * tokens, [1e3 * answer.first for answer in answers]
    return (
        f"{streams:>7} {prompt:>6} {sampled / seconds:>7.0f} {1e6 * cpu / sampled:>10.0f} "
        f"{statistics.median(firsts):>8.1f} {max(firsts):>9.1f}"
    )


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def ask(session: aiohttp.ClientSession, prompt: int, tokens: int, *, stream: bool = False) -> Answer:
    """One answer to a prompt of random tokens, as a gateway asks for it."""
    sampling = {"max_tokens": tokens, "ignore_eos": True, "logprobs": 0}
    body: dict[str, Any] = {"token_ids": random.choices(range(4000), k=prompt), "sampling_params": sampling}
    started = time.perf_counter()
    async with session.post("/inference/v1/generate", json=body | {"stream": stream}) as reply:
        reply.raise_for_status()
        await reply.content.readany()
        first = time.perf_counter() - started
        await reply.read()
    return Answer(first, time.perf_counter() - started, tokens)


async def reload(engine: EngineProcess, model: Any, directory: Path, version: int) -> tuple[float, float]:
    """Milliseconds to write new weights, and to have the engine use them."""
    started = time.perf_counter()
    save_weights(model, directory)
    written = time.perf_counter()
    await engine.load_weights(directory, str(version + 1))
    return 1e3 * (written - started), 1e3 * (time.perf_counter() - written)


if __name__ == "__main__":
    asyncio.run(main())
