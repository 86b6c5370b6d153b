# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the token forest costs: CPU per call, bytes per token, memory per turn, time to finish a session.

    python benchmarks/forest.py [--turns 20 200 1000] [--json]

A session starts with 8,000 tokens; each turn samples 150 and observes 250. The text is Python's own library, cut into
pieces of up to six characters that are numbered by frequency, as a tokenizer's vocabulary is. Every request brings its
whole history as new objects, as a parser makes them. Times are CPU time of this process, without the disk.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from nemo_gym_polar.chat import Conversation, Message, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.messages import dump_message, load_message
from nemo_gym_polar.forest.record import TurnCodec
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import Int32, VersionSpan

START, SAMPLED, OBSERVED = 8000, 150, 250  # tokens
TOOLS = tuple(
    Tool(f"tool_{at}", "What it does. " * 20, {"type": "object", "properties": {"path": {"type": "string"}}})
    for at in range(12)
)


@dataclass
class Report:
    """Milliseconds of CPU per turn, averaged over the session, and sizes."""

    turns: int
    tokens: int = 0
    match_ms: float = 0.0
    append_ms: float = 0.0
    encode_ms: float = 0.0
    finish_ms: float = 0.0
    bytes_per_token: float = 0.0
    memory_kb_per_turn: float = 0.0


@cache
def library() -> tuple[Int32, tuple[str, ...]]:
    """The corpus as token ids and as the pieces of text that they stand for."""
    files = sorted(Path(argparse.__file__).parent.glob("*.py"))
    pieces = tuple(re.findall(r" ?\w{1,6}|\s+|[^\w\s]", "".join(file.read_text("utf-8") for file in files)))
    ranks = {piece: rank for rank, (piece, _) in enumerate(Counter(pieces).most_common())}
    return np.array([ranks[piece] for piece in pieces], np.int32), pieces


def passage(random: np.random.Generator, tokens: int) -> tuple[Int32, Text]:
    """A stretch of the corpus from anywhere in it."""
    ids, pieces = library()
    start = int(random.integers(len(ids) - tokens))
    return ids[start : start + tokens], Text("".join(pieces[start : start + tokens]))


@dataclass
class Session:
    """A session as it grows."""

    forest: Forest = field(default_factory=lambda: Forest("bench"))
    history: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.codec = TurnCodec(self.forest)
        self.tokens, rules = passage(self.random, START)
        self.history = [Message("system", (rules,)), Message("user", (Text("Fix the bug."),))]

    def request(self) -> Conversation:
        """The history in new objects."""
        return Conversation(tuple(load_message(dump_message(message)) for message in self.history), TOOLS)

    def generation(self, at: int) -> Generation:
        sampled, text = passage(self.random, SAMPLED)
        answer = Message("assistant", (text, ToolCall(f"call_{at}", "tool_1", '{"path": "a"}')))
        logprobs = -self.random.gamma(0.3, size=SAMPLED).astype(np.float32)
        versions = (VersionSpan("0", 0, SAMPLED),)
        return Generation(self.tokens, sampled, logprobs, answer, "tool_calls", versions)

    def observe(self, generation: Generation) -> None:
        observed, text = passage(self.random, OBSERVED)
        self.tokens = np.concatenate((self.tokens, generation.sampled, observed))
        (call,) = generation.message.tool_calls
        self.history += [generation.message, Message("tool", (ToolResult(call.id, (text,)),))]


def measure(turns: int) -> Report:
    report, session = Report(turns), Session()
    clock = Stopwatch()
    written = 0
    for at in range(turns):
        request, generation = session.request(), session.generation(at)
        match = clock.time("match", session.forest.match, request)
        turn = clock.time("append", session.forest.append, match, generation)
        written += len(clock.time("encode", session.codec.encode, turn))
        session.observe(generation)
    for _ in range(5):
        clock.time("finish", build, session.forest)
    report.tokens = session.forest[turns - 1].length
    report.match_ms, report.append_ms, report.encode_ms = (clock.mean(name) for name in ("match", "append", "encode"))
    report.finish_ms = clock.best("finish")
    report.bytes_per_token = written / report.tokens
    report.memory_kb_per_turn = memory(turns)
    return report


def memory(turns: int) -> float:
    """Kilobytes of Python objects per turn, message texts included, token arrays not."""
    session = Session()
    tracemalloc.start()
    for at in range(turns):
        generation = session.generation(at)
        session.forest.append(session.forest.match(Conversation(tuple(session.history), TOOLS)), generation)
        session.observe(generation)
    kept, forest = tracemalloc.get_traced_memory()[0], session.forest
    tracemalloc.stop()
    arrays = sum(turn.delta.nbytes + turn.sampled.nbytes + turn.logprobs.nbytes for turn in forest.turns)
    return float(kept - arrays - 2.5 * session.tokens.nbytes) / turns / 1000  # the bench's copy, the forest's newest


class Stopwatch:
    """CPU milliseconds of named steps."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def time[**P, T](self, name: str, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        start = time.process_time()
        done = step(*args, **kwargs)
        self._taken.setdefault(name, []).append((time.process_time() - start) * 1000)
        return done

    def mean(self, name: str) -> float:
        return sum(self._taken[name]) / len(self._taken[name])

    def best(self, name: str) -> float:
        return min(self._taken[name])


def table(reports: list[Report]) -> str:
    rows = [list(map(_cell, asdict(report).values())) for report in reports]
    return "\n".join("  ".join(cell.rjust(18) for cell in row) for row in [list(asdict(reports[0])), *rows])


def _cell(value: float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, nargs="+", default=[20, 200, 1000], help="sessions of these lengths")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    reports = [measure(turns) for turns in options.turns]
    print(json.dumps([asdict(report) for report in reports], indent=2) if options.json else table(reports))


if __name__ == "__main__":
    main()
