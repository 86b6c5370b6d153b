# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a call costs more with the gateway in between: CPU of its process, and latency.

    python benchmarks/call_overhead.py [--json] [--stream] [--calls N]

Side by side in one run: the bare engine, a minimal recording proxy, and the gateway with durable capture (every answer
synced to disk before it is sent). The engine is canned, so that what is measured is what lies in between. Scenarios:

- `small_first`: new conversations of 512 tokens, 128 sampled: the gateway renders the whole prompt
- `small`: the second turn of such a conversation
- `large`: a further turn of a conversation of 30,000 tokens
- `growing`: all turns of sessions of 100 turns, from 512 to about 30,000 tokens
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import orjson
from processes import ROOT, child
from tokenizers import Tokenizer

from nemo_gym_polar.engines.factory import EngineSettings
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.gateway.standalone import ServeSettings
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import make_tokenizer, save_tokenizer

COMMAND = "python - <<'EOF'\n" + "\n".join(f"print('line {i} of the output', {i} * 2)" for i in range(6)) + "\nEOF"
SENTENCE = "The quick brown fox looks at file number {0} and sees that line {0} of it needs a change. "
ADMIN = {"authorization": "Bearer bench"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Execute a bash command in the current working directory.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        },
    }
]


@dataclass(slots=True)
class Samples:
    """Per measured call: seconds on the CPU of the process in between, and seconds of waiting."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        ordered = sorted(self.wall)
        return {
            "calls": len(self.wall),
            "cpu_ms": 1e3 * statistics.fmean(self.cpu),
            "cpu_ms_median": 1e3 * statistics.median(self.cpu),
            "latency_ms_p50": 1e3 * statistics.median(ordered),
            "latency_ms_p99": 1e3 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        }


class Measured(Protocol):
    """A process whose CPU time counts."""

    def cpu(self) -> float: ...


class Target:
    """Something that answers Chat Completions, in `process`."""

    def __init__(self, name: str, url: str, process: Measured, client: aiohttp.ClientSession) -> None:
        self.name = name
        self._base = url
        self._url = url + "/v1/chat/completions"
        self._process = process
        self._client = client
        self._headers = {"content-type": "application/json"}
        self._session = ""

    async def begin(self) -> None:
        """A gateway keeps each conversation in a session of its own."""
        if self.name != "gateway":
            return
        if self._session:
            async with self._client.delete(f"{self._base}/sessions/{self._session}", headers=ADMIN) as reply:
                assert reply.status == 200
        async with self._client.post(f"{self._base}/sessions", headers=ADMIN, json={}) as reply:
            made = await reply.json()
        self._session = made["session_id"]
        self._url = made["base_url"] + "/v1/chat/completions"
        self._headers["authorization"] = f"Bearer {made['secret']}"

    async def ask(self, history: list[Any], tokens: int, samples: Samples | None, *, stream: bool) -> None:
        """One call; the history grows by the answer and the result of its tool call."""
        body = orjson.dumps({"model": "m", "messages": history, "tools": TOOLS, "stream": stream})
        headers = {**self._headers, "x-prompt-tokens": str(tokens)}
        cpu, wall = self._process.cpu(), time.perf_counter()
        async with self._client.post(self._url, data=body, headers=headers) as reply:
            answer = await reply.read()
        elapsed = time.perf_counter() - wall
        assert reply.status == 200, answer
        if samples is not None:
            samples.wall.append(elapsed)
            samples.cpu.append(self._process.cpu() - cpu)
        history.append(_streamed(answer) if answer.startswith(b"data") else _message(answer))


def _message(answer: bytes) -> dict[str, Any]:
    message: dict[str, Any] = orjson.loads(answer)["choices"][0]["message"]
    return message


def _streamed(answer: bytes) -> dict[str, Any]:
    text, call, arguments = "", "", ""
    for line in answer.decode().split("\n\n"):
        if not line.startswith("data: {"):
            continue
        delta = orjson.loads(line[6:])["choices"][0]["delta"]
        text += delta.get("content") or ""
        for piece in delta.get("tool_calls", []):
            call = piece.get("id") or call
            arguments += piece["function"]["arguments"]
    function = {"name": "bash", "arguments": arguments}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
    }


def result(message: dict[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": text}


class Texts:
    """Texts of about a given number of tokens, each different."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._per_sentence = len(tokenizer.encode(SENTENCE.format(100)).ids)
        self._numbers = iter(range(100, 10**9))

    def of(self, tokens: int) -> str:
        return "".join(SENTENCE.format(next(self._numbers)) for _ in range(max(1, tokens // self._per_sentence)))

    def question(self, tokens: int) -> list[Any]:
        return [
            {"role": "system", "content": "You are an expert coding assistant."},
            {"role": "user", "content": self.of(tokens)},
        ]


async def small(target: Target, texts: Texts, calls: int, stream: bool) -> dict[str, Samples]:
    first, second = Samples(), Samples()
    for _ in range(calls):
        await target.begin()
        history = texts.question(280)  # and 230 of tools and system
        await target.ask(history, 512, first, stream=stream)
        history.append(result(history[-1], texts.of(40)))
        await target.ask(history, 700, second, stream=stream)
    return {"small_first": first, "small": second}


async def large(target: Target, texts: Texts, calls: int, stream: bool) -> dict[str, Samples]:
    samples = Samples()
    for _ in range(max(1, calls // 25)):
        await target.begin()
        history = texts.question(29_500)
        await target.ask(history, 30_000, None, stream=stream)
        for _ in range(5):
            history.append(result(history[-1], texts.of(100)))
            await target.ask(history, 30_000, samples, stream=stream)
    return {"large": samples}


async def growing(target: Target, texts: Texts, calls: int, stream: bool) -> dict[str, Samples]:
    samples = Samples()
    for _ in range(max(1, calls // 100)):
        await target.begin()
        history = texts.question(280)
        for turn in range(100):
            await target.ask(history, 512 + 300 * turn, samples, stream=stream)
            history.append(result(history[-1], texts.of(150)))
    return {"growing": samples}


async def measure(calls: int, stream: bool) -> dict[str, dict[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory(prefix="polar-bench-") as scratch, ExitStack() as stack:
        directory = Path(scratch)
        tokenizer = make_tokenizer(seed_corpus(400))
        save_tokenizer(tokenizer, directory)
        async with aiohttp.ClientSession() as client:
            targets = list(_targets(stack, directory, tokenizer, client, stream))
            return await _compare(targets, Texts(tokenizer), calls, stream)


async def _compare(
    targets: list[Target], texts: Texts, calls: int, stream: bool
) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for scenario in (small, large, growing):
        for target in targets:
            await small(target, texts, 5, stream)  # warm
            for name, samples in (await scenario(target, texts, calls, stream)).items():
                found.setdefault(name, {})[target.name] = samples.summary()
    return found


def _targets(
    stack: ExitStack, directory: Path, tokenizer: Tokenizer, client: aiohttp.ClientSession, stream: bool
) -> Iterator[Target]:
    answer = directory / "answer.json"
    answer.write_text(json.dumps(canned_answer(tokenizer)))
    engine = stack.enter_context(child(str(ROOT / "benchmarks" / "canned_engine.py"), str(answer)))
    if not stream:
        yield Target("engine", engine.first_line, engine, client)
        log = str(directory / "proxy.jsonl")
        script = str(ROOT / "benchmarks" / "recording_proxy.py")
        proxy = stack.enter_context(child(script, engine.first_line, log))
        yield Target("proxy", proxy.first_line, proxy, client)
    settings = serve_settings(engine.first_line, directory).model_dump_json()
    gateway = stack.enter_context(child("-c", SERVE, settings))
    yield Target("gateway", gateway.first_line.split()[2].rstrip(";"), gateway, client)


SERVE = """
import sys
from nemo_gym_polar.gateway.standalone import ServeSettings, run_gateway
run_gateway(ServeSettings.model_validate_json(sys.argv[1]), lambda text: print(text, flush=True))
"""


def canned_answer(tokenizer: Tokenizer) -> dict[str, Any]:
    """128 sampled tokens: a sentence, then a tool call."""
    function = f"<function=bash>\n<parameter=command>\n{COMMAND}\n</parameter>\n</function>"
    tail = tokenizer.encode(f"<tool_call>\n{function}\n</tool_call><|im_end|>").ids
    head = tokenizer.encode(SENTENCE.format(1) * 20).ids[: max(4, 128 - len(tail))]
    arguments = json.dumps({"command": COMMAND})
    return {
        "token_ids": head + tail,
        "text": tokenizer.decode(head),
        "id": "call_1",
        "name": "bash",
        "arguments": arguments,
    }


def serve_settings(engine: str, directory: Path) -> ServeSettings:
    return ServeSettings(
        engine=EngineSettings(
            urls=(engine,), model="m", tokenizer=str(directory), renderer_options={"enable_thinking": False}
        ),
        gateway=GatewaySettings(journals=directory / "journals", context_tokens=200_000),
        traces=directory / "traces",
        port=0,
        admin_token="bench",
    )


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = [
        f"{'scenario':<12} {'target':<8} {'calls':>5} {'CPU ms':>8} {'median':>8} {'p50 ms':>8} {'p99 ms':>8}  against"
    ]
    for name, rows in found.items():
        for target, row in rows.items():
            ratio = row["cpu_ms"] / rows["proxy"]["cpu_ms"] if "proxy" in rows else 0
            added = row["latency_ms_p50"] - rows["engine"]["latency_ms_p50"] if "engine" in rows else 0
            against = f"{ratio:.2f} x proxy, {added:+.2f} ms" if target != "engine" and "proxy" in rows else ""
            lines.append(
                f"{name:<12} {target:<8} {row['calls']:>5.0f} {row['cpu_ms']:>8.3f} {row['cpu_ms_median']:>8.3f} "
                f"{row['latency_ms_p50']:>8.3f} {row['latency_ms_p99']:>8.3f}  {against}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU and latency that the gateway adds to a call.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--stream", action="store_true", help="streamed answers; the gateway alone")
    parser.add_argument("--calls", type=int, default=200, help="calls per scenario, about (%(default)s)")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.calls, arguments.stream))
    print(json.dumps(found, indent=2) if arguments.json else table(found))


if __name__ == "__main__":
    main()
