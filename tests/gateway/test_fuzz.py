# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever body arrives, the answer is whole: a completion or a refusal in the provider's shape, never a 500."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.gateways import TOOLS, Bench, user

text = st.text(max_size=20)
odd = st.none() | st.booleans() | st.integers(-5, 5) | text | st.lists(text, max_size=2) | st.just({})
part = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": text}),
    st.fixed_dictionaries({"type": text, "value": odd}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": odd}),
    odd,
)
content = text | st.lists(part, max_size=3) | st.none()
call = st.fixed_dictionaries(
    {
        "id": text,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": text, "arguments": text | odd}),
    }
)
message = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "developer"]), "content": content}),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={"content": content, "reasoning_content": text | odd, "tool_calls": st.lists(call, max_size=2)},
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": text, "content": content}),
    st.fixed_dictionaries({"role": odd, "content": odd}),
)
tool = st.one_of(
    st.sampled_from(TOOLS),
    st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({"name": text, "parameters": st.dictionaries(text, odd)})}
    ),
    odd,
)
optional = {
    "tools": st.lists(tool, max_size=2) | odd,
    "tool_choice": odd,
    "temperature": odd,
    "max_tokens": st.integers(-1, 40) | odd,
    "stop": odd,
    "stream": st.booleans() | odd,
    "stream_options": st.just({"include_usage": True}) | odd,
    "anything": odd,
}
bodies = st.fixed_dictionaries({"model": st.just("m"), "messages": st.lists(message, max_size=4)}, optional=optional)
lives = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(bodies)
@settings(max_examples=150, suppress_health_check=lives)
async def test_any_body_gets_a_whole_answer(stand: Bench, body: dict[str, Any]) -> None:
    before = len(stand.engine.served)
    session = await stand.gateway.open()
    reply = await stand.post(session, body)
    if reply.status == 200:
        assert reply.body.endswith(b"data: [DONE]\n\n") or reply.json["object"] == "chat.completion"
        assert len(session.forest) == 1
    else:
        assert 400 <= reply.status < 500, reply
        assert reply.error["message"]
        assert len(stand.engine.served) == before
    await stand.gateway.finish(session.id)


@given(st.binary(max_size=100))
@settings(max_examples=50, suppress_health_check=lives)
async def test_any_bytes_are_refused(stand: Bench, body: bytes) -> None:
    session = await stand.gateway.open()
    reply = await stand.post(session, body)
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"
    assert len(session.forest) == 0
    await stand.gateway.finish(session.id)


@given(st.text(max_size=40))
@settings(max_examples=25, suppress_health_check=lives)
async def test_whatever_the_policy_says_reaches_the_harness(stand: Bench, said: str) -> None:
    """Also half a tool call, markers in odd places, control characters."""
    for script in (said, f"<tool_call>{said}", f"<tool_call>\n<function=bash>{said}</tool_call>", f"<think>{said}"):
        stand.engine.script = lambda _, text=script: text
        session = await stand.gateway.open()
        for stream in (False, True):
            reply = await stand.post(
                session, {"model": "m", "messages": [user("go")], "tools": TOOLS, "stream": stream}
            )
            assert reply.status == 200
            assert orjson.loads(reply.body.split(b"\n\n")[0].removeprefix(b"data: "))["choices"]
        await stand.gateway.finish(session.id)
