# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One question in each dialect, and what its answers and errors say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from tests.support.gateways import Reply


@dataclass(frozen=True, slots=True)
class Ask:
    """`path` and `body` of a call; `read` takes text and stop reason out of an answer, or of a stream's events."""

    dialect: str
    path: str
    body: dict[str, Any]
    stream: bool
    read: Callable[[Any], tuple[str, Any]]

    def answer(self, reply: Reply) -> tuple[str, Any]:
        return self.read(events(reply.body) if self.stream else reply.json)


def events(body: bytes) -> list[Any]:
    """The data of a stream's events, without OpenAI's closing word."""
    lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")]
    return [orjson.loads(line) for line in lines if line != b"[DONE]"]


def asks(text: str = "hi") -> list[Ask]:
    said = [{"role": "user", "content": text}]
    chat = {"model": "m", "messages": said}
    messages = {"model": "m", "max_tokens": 50, "messages": said}
    responses = {"model": "m", "input": text}
    google = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    models = "/v1beta/models/m:"
    return [
        Ask("chat", "/v1/chat/completions", chat, False, _chat),
        Ask("chat", "/v1/chat/completions", {**chat, "stream": True}, True, _chat_stream),
        Ask("responses", "/v1/responses", responses, False, _response),
        Ask(
            "responses",
            "/v1/responses",
            {**responses, "stream": True},
            True,
            lambda every: _response(every[-1]["response"]),
        ),
        Ask("messages", "/v1/messages", messages, False, _message),
        Ask("messages", "/v1/messages", {**messages, "stream": True}, True, _message_stream),
        Ask("generate_content", models + "generateContent", google, False, _candidate),
        Ask("generate_content", models + "streamGenerateContent?alt=sse", google, True, _candidate_stream),
    ]


def _chat(answer: Any) -> tuple[str, Any]:
    (choice,) = answer["choices"]
    return choice["message"]["content"], choice["finish_reason"]


def _chat_stream(all_events: Any) -> tuple[str, Any]:
    choices = [choice for event in all_events for choice in event["choices"]]
    return "".join(one["delta"].get("content") or "" for one in choices), choices[-1]["finish_reason"]


def _response(answer: Any) -> tuple[str, Any]:
    return answer["output"][-1]["content"][0]["text"], answer["status"]


def _message(answer: Any) -> tuple[str, Any]:
    return answer["content"][-1]["text"], answer["stop_reason"]


def _message_stream(all_events: Any) -> tuple[str, Any]:
    assert all_events[-1]["type"] == "message_stop"
    text = "".join(event["delta"].get("text", "") for event in all_events if event["type"] == "content_block_delta")
    (end,) = [event["delta"] for event in all_events if event["type"] == "message_delta"]
    return text, end["stop_reason"]


def _candidate(answer: Any) -> tuple[str, Any]:
    (candidate,) = answer["candidates"]
    text = "".join(part.get("text", "") for part in candidate["content"]["parts"])
    return text, candidate.get("finishReason")


def _candidate_stream(all_events: Any) -> tuple[str, Any]:
    pieces = [_candidate(event) for event in all_events]
    return "".join(text for text, _ in pieces), pieces[-1][1]
