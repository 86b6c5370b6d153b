# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A harness that does at random what real ones do: it re-serialises, drops thinking, retries, branches, compacts,
starts sub-agents, loses answers, changes its system line and its tools, and rewrites history."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from nemo_gym_polar.chat import Message, Tool
from nemo_gym_polar.forest.turn import Flag, Status
from tests.forest.world import (
    EDIT,
    SHELL,
    World,
    assistant,
    call,
    compact,
    encode,
    letters,
    result,
    said,
    system,
    user,
    without_thinking,
)

_WORDS = ["fix", "the", "bug", "in", "parser", "7", "über", "tests:", "all", "green,", "now", "édit", "it"]
_ODD_ARGUMENTS = ['{"command": "ls"}', '{ "b":1.0,  "a" : "5000" }', '{"path":"a b","n":[1,2.50]}', "{}", ""]


@dataclass
class Talk:
    """One conversation of the harness: its history, and the tools it declares."""

    history: list[Message]
    tools: tuple[Tool, ...] = (SHELL,)


@dataclass
class Harness:
    """`shown` are the turns whose answers stand in some history; the forest must not call them unseen."""

    world: World
    random: Random
    talks: list[Talk] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    _calls: int = 0

    def run(self, steps: int) -> None:
        self.talks.append(Talk([system("You are an agent."), user(self.words())]))
        moves = [self.step] * 6 + [self.retry, self.branch, self.lose, self.fail, self.silence, self.compaction]
        moves += [self.sub_agent, self.side_call, self.change_system, self.change_tools, self.cut, self.rewrite]
        moves += [self.update_weights, self.constrain, self.interrupt]
        for _ in range(steps):
            self.random.choice(moves)()

    # Moves

    def step(self) -> None:
        talk = self.pick()
        answer = self.message()
        self.world.ask(talk.history, answer, tools=talk.tools, sampled=said(answer, self.spelling()))
        self.hear(talk, answer)

    def retry(self) -> None:
        talk = self.pick()
        answers = [self.message(), self.message()]
        for answer in answers:
            self.world.ask(talk.history, answer, tools=talk.tools)
        heard = self.random.choice([0, 1])
        self.hear(talk, answers[heard], turn=len(self.world.calls) - 2 + heard)

    def branch(self) -> None:
        talk = self.pick()
        self.talks.append(Talk(talk.history[: self.random.randint(2, len(talk.history))], talk.tools))

    def lose(self) -> None:
        talk = self.pick()
        answer = self.message()
        turn = self.world.ask(talk.history, answer, tools=talk.tools)
        if turn.status is Status.KEPT:
            self.world.forest.mark(turn.index, status=Status.UNSEEN)
        if self.random.random() < 0.5:
            self.hear(talk, answer)

    def fail(self) -> None:
        talk = self.pick()
        self.world.fail(self.world.match(talk.history, talk.tools))

    def silence(self) -> None:
        talk = self.pick()
        answer = self.message()
        self.world.fail(self.world.match(talk.history, talk.tools), answer)
        talk.history += [self.echo(answer), *self.reply(answer)]

    def compaction(self) -> None:
        talk = self.pick()
        summary = assistant(f"Summary {self.words()}: {self.words()} {self.words()} {self.words()}")
        self.world.ask([*talk.history, user("Summarise.")], summary, tools=self.random.choice([(), talk.tools]))
        talk.history = [*talk.history[:2], user(f"So far: {summary.text}")]

    def sub_agent(self) -> None:
        talk = self.pick()
        prompt = self.words() + self.words()
        self._calls += 1
        spawn = assistant("", call(f"spawn-{self._calls}", f'{{"prompt": "{prompt}"}}', "task"))
        self.world.ask(talk.history, spawn, tools=talk.tools)
        self.hear(talk, spawn)
        same = self.random.random() < 0.5
        self.talks.append(Talk([talk.history[0] if same else system("You are a helper."), user(prompt)]))

    def side_call(self) -> None:
        self.world.ask([system("You write titles."), user(self.words())], self.message(calls=0), tools=())

    def change_system(self) -> None:
        self.pick().history[0] = system(f"{self.words()} left")

    def change_tools(self) -> None:
        self.pick().tools = self.random.choice([(SHELL,), (SHELL, EDIT)])

    def cut(self) -> None:
        talk = self.pick()
        answer = assistant(self.words())
        self.world.ask(talk.history, answer, tools=talk.tools, end=False, finish="length")
        self.hear(talk, answer)

    def rewrite(self) -> None:
        talk = self.pick()
        talk.history[self.random.randrange(1, len(talk.history))] = user("<masked>")

    def update_weights(self) -> None:
        self.world.version = str(int(self.world.version) + 1)

    def constrain(self) -> None:
        talk = self.pick()
        answer = self.message()
        self.world.ask(talk.history, answer, tools=talk.tools, flags=frozenset({Flag.CONSTRAINED}))
        self.hear(talk, answer)

    def interrupt(self) -> None:
        talk = self.pick()
        half = self.random.choice([[], encode("half an")])
        nothing = Message("assistant", ())
        match = self.world.match(talk.history, talk.tools)
        self.world.answer(match, nothing, sampled=half, end=False, finish="abort", status=Status.PARTIAL)

    # Parts

    def pick(self) -> Talk:
        return self.random.choice(self.talks)

    def words(self) -> str:
        return " ".join(self.random.choices(_WORDS, k=self.random.randint(1, 5)))

    def spelling(self):
        return self.random.choice([encode, encode, letters])

    def message(self, calls: int | None = None) -> Message:
        made = []
        for _ in range(self.random.choice([0, 1, 1, 2]) if calls is None else calls):
            self._calls += 1
            made.append(call(f"call-{self._calls}", self.random.choice(_ODD_ARGUMENTS)))
        thought = self.random.choice(["", self.words() + " \n"])
        return assistant(self.random.choice(["", self.words(), f" {self.words()}\n"]), *made, reasoning=thought)

    def hear(self, talk: Talk, answer: Message, turn: int | None = None) -> None:
        """The answer arrives and the harness goes on from it."""
        if answer.tool_calls:
            self.shown.add(len(self.world.calls) - 1 if turn is None else turn)
        talk.history = [*talk.history, self.echo(answer), *self.reply(answer)]

    def echo(self, answer: Message) -> Message:
        return self.random.choice([lambda message: message, compact, without_thinking])(answer)

    def reply(self, answer: Message) -> list[Message]:
        if answer.tool_calls:
            return [result(one.id, self.words()) for one in answer.tool_calls]
        return [user(self.words())]
