# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Real calls through the gateway become results that NeMo RL can read, whatever happened in between."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import orjson
import pytest

from nemo_gym_polar.environment import sessions as module
from nemo_gym_polar.environment.protocol import Finish, Verify
from nemo_gym_polar.gateway.gateway import UnknownSessionError
from nemo_gym_polar.rollouts.task import BuilderSpec, SessionStatus
from tests.environment.conftest import PARAMS, Desk
from tests.environment.reference_walk import BrokenContractError, walk
from tests.support.fake_engine import bash
from tests.support.gateways import result as tool_result
from tests.support.gateways import user


def on_the_wire(result: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = orjson.loads(orjson.dumps(result))
    return decoded


async def test_a_conversation_is_delivered_token_for_token(desk: Desk) -> None:
    at = await desk.open()
    await desk.converse(at, "and now?", "and then?")
    result = on_the_wire(await desk.verify(at, reward=0.5))
    row = walk(result)
    last = desk.engine.served[-1]
    assert row.tokens == last.context + last.sampled
    sampled = [token for served in desk.engine.served for token in served.sampled]
    assert [token for token, trained in zip(row.tokens, row.mask, strict=True) if trained] == sampled
    expected = np.array([value for served in desk.engine.served for value in served.logprobs], dtype=np.float32)
    assert np.array_equal(np.array(row.logprobs, dtype=np.float32)[row.mask], expected)
    assert (row.turns, result["reward"], result["mask_sample"]) == (3, 0.5, False)
    assert result["instance_config"] == {"mask_sample": False}
    assert result["delivered_tokens"] == len(sampled)
    assert "_ng_failure_class" not in result


async def test_tool_calls_and_their_results_are_shown(desk: Desk) -> None:
    desk.engine.script = lambda prompt: "Done." if "tool_response" in prompt else bash("touch hello.txt")
    at = await desk.open()
    first = await desk.call(at, [user("go")])
    assert first is not None
    call_id = first["tool_calls"][0]["id"]
    await desk.call(at, [user("go"), first, tool_result(call_id, "made it")])
    result = on_the_wire(await desk.verify(at))
    shown = [(item["type"], item.get("name"), item.get("output")) for item in result["response"]["output"]]
    assert shown == [
        ("function_call", "bash", None),
        ("function_call_output", None, "made it"),
        ("message", None, None),
    ]
    assert walk(result).turns == 2


async def test_a_rewritten_history_leaves_the_later_chain_behind(desk: Desk) -> None:
    at = await desk.open()
    await desk.converse(at)
    await desk.converse(at, "more", "and more", start="Another story")
    result = on_the_wire(await desk.verify(at))
    row = walk(result)
    assert row.tokens[: len(desk.engine.served[0].context)] == desk.engine.served[0].context
    left = sum(result[key] for key in result if key.startswith("undelivered_") or key == "dropped_tokens")
    sampled = sum(len(served.sampled) for served in desk.engine.served)
    assert row.mask.count(True) + left == sampled
    assert result["dropped_tokens"] == sum(result["dropped_tokens_by_cause"].values())


@pytest.mark.parametrize("status", [SessionStatus.ERROR, SessionStatus.CANCELLED])
async def test_a_failed_rollout_keeps_its_tokens_but_is_masked(desk: Desk, status: SessionStatus) -> None:
    at = await desk.open()
    await desk.converse(at)
    result = on_the_wire(await desk.verify(at, status, masked=True, error="the sandbox died"))
    assert walk(result).turns == 1
    assert result["mask_sample"] is True
    assert result["instance_config"]["mask_sample"] is True
    assert (result["_ng_failure_class"], result["error"]) == (f"rollout_{status.lower()}", "the sandbox died")
    assert result["reward"] == 0.0


async def test_a_time_out_with_tokens_is_trained_on(desk: Desk) -> None:
    at = await desk.open()
    await desk.converse(at)
    result = on_the_wire(await desk.verify(at, SessionStatus.TIMEOUT, reward=0.0))
    assert walk(result).turns == 1
    assert (result["mask_sample"], result["timed_out"]) == (False, True)


async def test_a_harness_that_never_called_costs_no_batch(desk: Desk) -> None:
    at = await desk.open()
    result = on_the_wire(await desk.verify(at))
    row = walk(result)
    served = desk.engine.served[0]
    assert (row.tokens, row.mask.count(True)) == (served.context + served.sampled, 1)
    assert (result["_ng_failure_class"], result["mask_sample"]) == ("no_tokens", True)
    assert (result["placeholder_tokens"], result["delivered_tokens"]) == (1, 0)


async def test_without_an_engine_the_result_is_still_a_result(desk: Desk) -> None:
    desk.engine.faults.extend(["500"] * 9)
    at = await desk.open()
    assert await desk.call(at, [user("go")]) is None
    result = on_the_wire(await desk.verify(at, SessionStatus.ERROR))
    assert (result["mask_sample"], result["response"]["output"]) == (True, [])
    with pytest.raises(BrokenContractError, match="no generation data"):
        walk(result)


async def test_all_results_have_the_same_keys(desk: Desk) -> None:
    """NeMo RL takes the names of its metrics from the first row."""
    whole, empty = await desk.open("whole"), await desk.open("empty")
    await desk.converse(whole)
    results = [await desk.verify(whole), await desk.verify(empty, SessionStatus.ERROR)]
    numbers = [{key for key, value in result.items() if isinstance(value, bool | int | float)} for result in results]
    assert numbers[0] == numbers[1]
    assert {"reward", "mask_sample", "dropped_tokens", "seconds_running"} <= numbers[0]
    assert results[0]["seconds_running"] == 1.5


async def test_the_row_s_sampling_values_rule(desk: Desk) -> None:
    at = await desk.open(temperature=1.0, top_p=0.5, max_output_tokens=2)
    await desk.call(at, [user("go")], temperature=0.1, top_p=0.9, max_tokens=500)
    asked = desk.engine.served[0].parameters
    assert (asked["temperature"], asked["top_p"], asked["max_tokens"]) == (1.0, 0.5, 2)


async def test_other_builders_serve_evaluators_and_one_chain_is_delivered(desk: Desk) -> None:
    at = await desk.open()
    await desk.converse(at, "more")
    finished = await desk.sessions.finish(Finish(session_id="s1", builder=BuilderSpec(strategy="per_request")))
    assert (len(finished.traces), finished.turns) == (2, 2)
    trace = finished.traces[1].trace()
    assert trace.trained_tokens == len(desk.engine.served[1].sampled)
    assert walk(on_the_wire(await desk.verify(at, finish=False))).turns == 2


async def test_after_the_end_nothing_is_left(desk: Desk) -> None:
    at = await desk.open()
    await desk.converse(at)
    await desk.verify(at)
    assert await desk.call(at, [user("once more")]) is None
    ask = Verify(
        responses_create_params=PARAMS, session_id="s1", task_id="t", status=SessionStatus.COMPLETED, reward=0.0
    )
    with pytest.raises(UnknownSessionError, match="s1"):
        await desk.sessions.verify(ask)


async def test_abandoned_sessions_are_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE", -30.0)
    await desk.open("lost")
    await asyncio.sleep(0.01)
    await desk.open("next")
    with pytest.raises(UnknownSessionError):
        await desk.sessions.finish(Finish(session_id="lost"))
