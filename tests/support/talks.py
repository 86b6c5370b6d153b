# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A harness's side of a conversation with tools in each dialect: a body to send, and what its answer adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOL = {"name": "bash", "description": "Run a command"}
OUTPUT = "(no output)"
NUDGE = "Go on."


@dataclass
class Talk(ABC):
    """`limit` bounds an answer, in tokens; `calls` are the names of the tools that were called so far."""

    path: ClassVar[str]
    limit: int = 80
    history: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    @abstractmethod
    def body(self, **more: Any) -> dict[str, Any]:
        """The next call; `more` are further fields."""

    @abstractmethod
    def take(self, answer: Any) -> None:
        """Add an answer, and what its tools gave or a word to go on."""

    def _go_on(self, results: list[dict[str, Any]]) -> None:
        self.history += results
        if not results:
            self.ask(NUDGE)


class Chat(Talk):
    path = "/v1/chat/completions"

    def body(self, **more: Any) -> dict[str, Any]:
        tools = [{"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}]
        return {"model": "m", "messages": self.history, "tools": tools, "max_tokens": self.limit, **more}

    def take(self, answer: Any) -> None:
        message = answer["choices"][0]["message"]
        self.history.append(message)
        calls = message.get("tool_calls") or []
        self.calls += [call["function"]["name"] for call in calls]
        self._go_on([{"role": "tool", "tool_call_id": call["id"], "content": OUTPUT} for call in calls])


class Responses(Talk):
    path = "/v1/responses"

    def body(self, **more: Any) -> dict[str, Any]:
        tools = [{"type": "function", **TOOL, "parameters": PARAMETERS, "strict": False}]
        return {"model": "m", "input": self.history, "tools": tools, "max_output_tokens": self.limit, **more}

    def take(self, answer: Any) -> None:
        self.history += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        self.calls += [call["name"] for call in calls]
        results = {call["call_id"]: OUTPUT for call in calls}
        self._go_on([{"type": "function_call_output", "call_id": id_, "output": said} for id_, said in results.items()])


class Messages(Talk):
    path = "/v1/messages"

    def body(self, **more: Any) -> dict[str, Any]:
        tools = [{**TOOL, "input_schema": PARAMETERS}]
        return {"model": "m", "messages": self.history, "tools": tools, "max_tokens": self.limit, **more}

    def take(self, answer: Any) -> None:
        self.history.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        self.calls += [call["name"] for call in calls]
        blocks = [{"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT} for call in calls]
        self._go_on([{"role": "user", "content": blocks}] if blocks else [])


class GenerateContent(Talk):
    path = "/v1beta/models/m:generateContent"

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "parts": [{"text": text}]})

    def body(self, **more: Any) -> dict[str, Any]:
        tools = [{"functionDeclarations": [{**TOOL, "parametersJsonSchema": PARAMETERS}]}]
        limit = {"maxOutputTokens": self.limit}
        return {"contents": self.history, "tools": tools, "generationConfig": limit, **more}

    def take(self, answer: Any) -> None:
        content = answer["candidates"][0]["content"]
        self.history.append(content)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        self.calls += [call["name"] for call in calls]
        parts = [{"functionResponse": {**_named(call), "response": {"output": OUTPUT}}} for call in calls]
        self._go_on([{"role": "user", "parts": parts}] if parts else [])


def _named(call: dict[str, Any]) -> dict[str, Any]:
    return {key: call[key] for key in ("id", "name") if key in call}


DIALECTS: tuple[type[Talk], ...] = (Chat, Responses, Messages, GenerateContent)
