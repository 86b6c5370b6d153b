# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`per_request` against `prefix_merging`: what the local trainer has to do for one and the same workload.

    python benchmarks/builder_ablation.py [--run DIR] [--groups N] [--samples N] [--turns N] [--json]

Journals are replayed through both builders, and the trainer learns once from what each made: one pass, an update for
every `--sequences` traces. `--run` takes the journals of a real run; without it, sessions are recorded first: turns
that continue each other, now and then a sub-agent, and a compaction when the context is full. The model attends to the
whole context, as large ones do, so that a context that is read again costs what it costs there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from nemo_gym_polar.chat import Conversation, Message, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.model import PolicySize, create_policy, save_policy
from nemo_gym_polar.policy.tokenizer import make_tokenizer
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.tokens import Int32, VersionSpan
from nemo_gym_polar.training.batch import flatten
from nemo_gym_polar.training.credit import assign_credit
from nemo_gym_polar.training.packing import pack
from nemo_gym_polar.training.settings import PackingSettings, TrainerSettings
from nemo_gym_polar.training.trainer import Trainer

BUILDERS = ("per_request", "prefix_merging")
POLAR = {"updates": "1185 -> 218 (5.44x)", "wall time": "5.39x"}
PROMPT, SAMPLED, OBSERVED, CONTEXT = 400, 30, 50, 1800  # tokens
SUB_AGENT = 0.04  # of a turn
VOCABULARY = 1024
TOOLS = (Tool("bash", "Run a command", {"type": "object"}), Tool("task", "Ask another agent", {"type": "object"}))


@dataclass(slots=True)
class Work:
    """What a builder made of the workload, and what learning from it took. Tokens are inputs of forward passes."""

    builder: str
    traces: int
    updates: int
    trained_tokens: int
    input_tokens: int
    padded_tokens: int
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


class Talk:
    """One agent's conversation, whose tokens are random."""

    def __init__(self, recorder: Recorder, random: np.random.Generator, opening: Sequence[Message]) -> None:
        self._recorder = recorder
        self._random = random
        self.history = list(opening)
        self.tokens = self.ids(PROMPT)
        self.calls = 0

    def ids(self, count: int) -> Int32:
        return self._random.integers(10, VOCABULARY - 10, count).astype(np.int32)

    async def turn(self, answer: Message) -> None:
        sampled = self.ids(max(4, int(self._random.gamma(2, SAMPLED / 2))))
        logprobs = np.full(len(sampled), -math.log(VOCABULARY), np.float32)
        versions = (VersionSpan("0", 0, len(sampled)),)
        match = self._recorder.match(Conversation(tuple(self.history), TOOLS))
        await self._recorder.record(match, Generation(self.tokens, sampled, logprobs, answer, versions=versions))
        self.history.append(answer)
        self.tokens = np.concatenate([self.tokens, sampled])

    async def work(self, name: str = "bash") -> None:
        """A turn that calls a tool, and what the tool says."""
        self.calls += 1
        call = ToolCall(f"call_{id(self)}_{self.calls}", name, json.dumps({"command": f"step {self.calls}"}))
        await self.turn(Message("assistant", (call,)))
        self.history.append(Message("tool", (ToolResult(call.id, (Text(f"result {self.calls}"),)),)))
        self.tokens = np.concatenate([self.tokens, self.ids(int(self._random.gamma(2, OBSERVED / 2)) + 1)])

    async def compact(self) -> None:
        """Sum the history up and begin anew from the summary."""
        self.history.append(said("user", "Sum up this conversation, so that another can go on from it."))
        self.tokens = np.concatenate([self.tokens, self.ids(20)])
        summary = f"So far {self.calls} steps were made, and all of them went as they should have gone."
        await self.turn(Message("assistant", (Text(summary),)))
        self.history = [*self.history[:1], said("user", f"Go on from this summary: {summary}")]
        self.tokens = np.concatenate([self.tokens[: PROMPT // 2], self.ids(PROMPT // 2)])


def said(role: str, text: str) -> Message:
    return Message("system" if role == "system" else "user", (Text(text),))


async def record(path: Path, session: str, turns: int, seed: int, committer: Committer) -> None:
    random = np.random.default_rng(seed)
    recorder = await Recorder.open(path, session, committer)
    talk = Talk(recorder, random, [said("system", "You are an agent."), said("user", "Fix the bug.")])
    for number in range(turns):
        if random.random() < SUB_AGENT:
            await talk.work("task")
            other = Talk(recorder, random, [said("system", "You help an agent."), said("user", f"Find {number}.")])
            for _ in range(max(1, turns // 4)):
                await other.work()
        await talk.work()
        if len(talk.tokens) > CONTEXT:
            await talk.compact()
    await talk.turn(Message("assistant", (Text("Done."),)))
    await recorder.close()


async def recorded(directory: Path, groups: int, samples: int, turns: int) -> list[list[Forest]]:
    random, committer = np.random.default_rng(0), Committer()
    made: list[list[Forest]] = []
    for group in range(groups):
        made.append([])
        for sample in range(samples):
            session = f"g{group}s{sample}"
            path = directory / f"{session}.journal"
            length = max(2, int(random.lognormal(math.log(turns), 0.5)))
            await record(path, session, length, group * samples + sample, committer)
            made[-1].append(read_journal(path))
    committer.close()
    return made


def of_run(directory: Path, samples: int) -> list[list[Forest]]:
    forests = [read_journal(path) for path in sorted(directory.rglob("*.journal"))]
    return [forests[at : at + samples] for at in range(0, len(forests) - samples + 1, samples)]


def results(groups: Iterable[Iterable[Forest]], builder: str) -> list[list[SessionResult]]:
    """Every other session of a group was worth something, so that all of them give gradient."""
    return [
        [
            SessionResult(
                session_id=forest.session_id,
                task_id=str(number),
                sample=sample,
                status=SessionStatus.COMPLETED,
                reward=float(sample % 2),
                traces=build(forest, builder).traces,
            )
            for sample, forest in enumerate(group)
        ]
        for number, group in enumerate(groups)
    ]


def learn(policy: Path, groups: list[list[SessionResult]], builder: str, sequences: int) -> Work:
    traces = [trace for group in groups for session in group for trace in session.traces]
    packing = PackingSettings(row_tokens=2048, microbatch_tokens=4096)
    settings = TrainerSettings(
        steps=1, epochs=1, minibatches=math.ceil(len(traces) / sequences), packing=packing, threads=1
    )
    trainer = Trainer(policy, settings, seed=0)
    inputs, padded = sizes(groups, settings, sequences)
    wall, cpu = time.perf_counter(), time.process_time()
    metrics = trainer.step(groups)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    return Work(builder, len(traces), metrics.updates, metrics.trained_tokens, inputs, padded, *taken)


def sizes(groups: list[list[SessionResult]], settings: TrainerSettings, sequences: int) -> tuple[int, int]:
    """Tokens that forward passes read, and the padding beside them, for the packing that an epoch has."""
    batch = flatten(assign_credit(groups, settings.credit), settings.loss, None, None)
    inputs = rows = 0
    for at in range(0, len(batch.pieces), sequences):
        pieces = [piece for example in batch.pieces[at : at + sequences] for piece in example]
        packing = settings.packing
        made = pack(pieces, row_tokens=packing.row_tokens, microbatch_tokens=packing.microbatch_tokens)
        inputs += sum(map(len, pieces))
        rows += sum(microbatch.input_ids.numel() for microbatch in made)
    return inputs, rows - inputs


def compare(groups: list[list[Forest]], sequences: int) -> list[Work]:
    with tempfile.TemporaryDirectory() as root:
        policy = Path(root)
        tokenizer = make_tokenizer(seed_corpus(), vocab_size=VOCABULARY)
        size = PolicySize(
            layers=2, width=32, heads=2, kv_heads=1, feed_forward=64, head_width=16, window=1 << 20, context=1 << 20
        )
        save_policy(create_policy(tokenizer, size), tokenizer, policy)
        return [learn(policy, results(groups, builder), builder, sequences) for builder in BUILDERS]


def ratios(works: Sequence[Work]) -> dict[str, float]:
    """How many times more `per_request` takes."""
    more, less = map(asdict, works)
    return {name: round(more[name] / less[name], 2) for name in more if name != "builder" and less[name]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="replay the journals below this directory")
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--turns", type=int, default=6, help="median of a session")
    parser.add_argument("--sequences", type=int, default=8, help="traces of one update")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        if options.run:
            groups = of_run(options.run, options.samples)
        else:
            groups = asyncio.run(recorded(Path(root), options.groups, options.samples, options.turns))
        works = compare(groups, options.sequences)
    if options.json:
        print(json.dumps({"builders": [asdict(work) for work in works], "ratios": ratios(works), "polar": POLAR}))
        return
    for row in [*map(asdict, works), {"builder": "ratio", **ratios(works)}, {"builder": "Polar's", **POLAR}]:
        print(
            "  ".join(
                f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )


if __name__ == "__main__":
    main()
