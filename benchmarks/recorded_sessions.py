# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions to train on, as journals: made up here, with random tokens, or those of a real run.

Turns continue each other; now and then an agent asks another one, and a full context is summed up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nemo_gym_polar.chat import Conversation, Message, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import Int32, VersionSpan

PROMPT, SAMPLED, OBSERVED, CONTEXT = 400, 30, 50, 1800  # tokens
SUB_AGENT = 0.04  # of a turn
VOCABULARY = 1024
TOOLS = (Tool("bash", "Run a command", {"type": "object"}), Tool("task", "Ask another agent", {"type": "object"}))


class Talk:
    """One agent's conversation, whose tokens are random."""

    def __init__(self, recorder: Recorder, random: np.random.Generator, opening: Sequence[Message]) -> None:
        self._recorder = recorder
        self._random = random
        self._name = len(recorder.forest.turns)  # that of its first turn: no other talk of the session has it
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
        call = ToolCall(f"call_{self._name}_{self.calls}", name, json.dumps({"command": f"step {self.calls}"}))
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
