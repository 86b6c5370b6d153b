# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up chats that the policy learns to talk from: the right form of an answer, never the right choice.

Three kinds. *Copying*: say a name back, so that the policy can find a word in a request and repeat it. *Acting*: asked
for something, call a shell tool with a command drawn at random, whatever was asked; then end the turn. *Tools*: the
same with other tools, declared just before. That the request has anything to do with the command is left for
reinforcement learning to find out, and so is which kind of request wants which command.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nemo_gym_polar.policy.corpus import WORDS
from nemo_gym_polar.tasks.bundled import REMOVE, TOUCH
from nemo_gym_polar.tasks.wording import FILE_NAMES

WORDINGS = {"touch": TOUCH, "rm": REMOVE}
COMMANDS = tuple(WORDINGS)
"""What the policy may do to a file before it has learned which."""

SHELL = "bash"
ANSWER = "Done."
NO_OUTPUT = "(no output)"
_ERROR = "{command}: cannot do that to '{name}': No such file or directory\n\n\nCommand exited with code 1"
_ASK_BACK = (
    "Say {name} back.",
    "Repeat the name {name}.",
    "Echo {name} please.",
    "Which file is {name}? Say its name.",
    "Read me this name: {name}",
)
_SAY_BACK = ("{name}", "{name}", "The name is {name}", "It is {name}")
_SYSTEM_LENGTHS = (0, 4, 10, 20, 40, 80)  # words
_FOLDERS = ("workspace", "home/agent", "repo", "srv/project")


@dataclass(frozen=True, slots=True)
class ToolShape:
    """A tool of some harness: the argument that takes the command, and others with a value to give."""

    name: str
    command: str
    others: Mapping[str, str]

    def schema(self) -> dict[str, Any]:
        properties = {name: {"type": "string"} for name in (self.command, *self.others)}
        parameters = {"type": "object", "required": [self.command], "properties": properties}
        return {"type": "function", "function": {"name": self.name, "description": "Run it.", "parameters": parameters}}


TOOLS = (
    ToolShape("run_shell_command", "command", {"description": "Run it"}),
    ToolShape("exec_command", "cmd", {}),
    ToolShape("shell", "script", {}),
    ToolShape("Bash", "command", {"description": "Run it"}),
    ToolShape("terminal", "input", {"timeout": "10"}),
)


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation as Chat Completions sends it; all that the assistant says is to be learned.

    `asked` is what a request really asks for: the text of a right answer, or the command of a right call.
    """

    messages: list[dict[str, Any]]
    asked: str
    tools: list[dict[str, Any]] | None = None


def short_copy(generator: random.Random) -> Chat:
    """A name said back, with nothing before: where copying is easiest to learn."""
    name = _any_name(generator)
    said = generator.choice(_SAY_BACK).format(name=name)
    return Chat([_ask(generator.choice(_ASK_BACK).format(name=name)), _say(said)], name)


def mixed(generator: random.Random) -> Chat:
    """Any kind of chat."""
    kinds: tuple[Callable[[random.Random], Chat], ...] = (_copy, _echo, act, _use_tools)
    return generator.choices(kinds, weights=(24, 16, 45, 15))[0](generator)


def _copy(generator: random.Random) -> Chat:
    chat = short_copy(generator)
    return Chat([*_system(generator), *chat.messages], chat.asked)


def _echo(generator: random.Random) -> Chat:
    """Copying inside a call: here the command is all about the request."""
    name = _any_name(generator)
    ask = _ask(generator.choice(_ASK_BACK).format(name=name))
    command = f"echo {name}"
    return Chat([*_system(generator), ask, *_call(SHELL, {"command": command}, name)], command)


def act(generator: random.Random) -> Chat:
    """A request, and any command: by the shell tool of harnesses whose declarations lie too far back to be seen."""
    request, asked = _request(generator)
    command, name = generator.choice(COMMANDS), generator.choice(FILE_NAMES)
    result = _ERROR.format(command=command, name=name) if generator.random() < 0.25 else NO_OUTPUT
    call = _call(SHELL, {"command": f"{command} {name}"}, result)
    return Chat([*_system(generator), request, *call], asked)


def _use_tools(generator: random.Random) -> Chat:
    """Tools in sight: call one of them, by its own name and arguments."""
    request, asked = _request(generator)
    tools = generator.sample(TOOLS, generator.randint(1, 2))
    chosen = generator.choice(tools)
    command = f"{generator.choice(COMMANDS)} {generator.choice(FILE_NAMES)}"
    call = _call(chosen.name, {chosen.command: command, **chosen.others}, NO_OUTPUT)
    return Chat([*_system(generator), request, *call], asked, [tool.schema() for tool in tools])


def _request(generator: random.Random) -> tuple[dict[str, Any], str]:
    """A request, and the command that it asks for."""
    command, name = generator.choice(COMMANDS), generator.choice(FILE_NAMES)
    return _ask(WORDINGS[command].draw(generator).format(name=name)), f"{command} {name}"


def _system(generator: random.Random) -> list[dict[str, Any]]:
    """A system prompt of any length, often none."""
    length = generator.choice(_SYSTEM_LENGTHS)
    if not length:
        return []
    text = " ".join(generator.choices(WORDS["common"] + WORDS["noun"], k=length)).capitalize() + "."
    if generator.random() < 0.5:
        text += f"\n\n<cwd>\n/{generator.choice(_FOLDERS)}\n</cwd>"
    return [{"role": "system", "content": text}]


def _any_name(generator: random.Random) -> str:
    """One of the tasks' files, or a name that no task knows: copying must not be a matter of a few names."""
    if generator.random() < 0.5:
        return generator.choice(FILE_NAMES)
    return f"{generator.choice(WORDS['stem'])}.{generator.choice(WORDS['suffix'])}"


def _ask(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _say(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _call(name: str, arguments: Mapping[str, str], result: str) -> Sequence[dict[str, Any]]:
    """A tool call, its result, and the end of the episode."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_0", "type": "function", "function": function}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": result},
        _say(ANSWER),
    )
