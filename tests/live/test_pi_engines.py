# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Pi in a real sandbox on every kind of engine: one chain, and the tokens that were sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.pi import PiHarness
from nemo_gym_polar.rollouts.task import EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine, bash
from tests.support.fake_nemo_rl import FakeNeMoRL
from tests.support.fake_sglang import FakeSGLang
from tests.support.rollouts import stand

# With blanks that no template would render again: a chain that survives them was not re-tokenised.
UNUSUAL = bash("\n  echo hi > hello.txt  ")


def steps(first: str) -> Any:
    """Three turns: a command, a look at what it did, an end."""

    def script(context: str) -> str:
        answered = context.count("<tool_response>")
        return (first, bash("cat hello.txt"), "Done.")[min(answered, 2)]

    return script


@pytest.fixture(scope="module", autouse=True)
def pi() -> None:
    PiHarness({}).install()


@pytest.mark.parametrize(
    ("fake", "fields", "first"),
    [
        pytest.param(FakeSGLang, {"kind": "sglang"}, UNUSUAL, id="sglang-tokens"),
        pytest.param(FakeSGLang, {"kind": "sglang", "mode": "chat"}, bash("echo hi > hello.txt"), id="sglang-chat"),
        pytest.param(FakeNeMoRL, {"kind": "nemo_rl", "mode": "chat"}, UNUSUAL, id="nemo_rl"),
        pytest.param(FakeEngine, {"kind": "openai", "mode": "chat"}, bash("echo hi > hello.txt"), id="openai-chat"),
    ],
)
async def test_three_turns_are_one_chain(
    fake: Any, fields: dict[str, Any], first: str, model_directory: Path, tmp_path: Path
) -> None:
    async with (
        fake(model_directory, script=steps(first)) as engine,
        stand(engine, tmp_path, engine_fields=fields) as made,
    ):
        request = TaskRequest(
            task_id="pi",
            instruction="Create hello.txt in the current directory.",
            runtime=RuntimeSpec(backend="bubblewrap", files={"README": "A task.\n"}),
            evaluator=EvaluatorSpec(config={"command": "grep -qx hi hello.txt"}),
            timeout_seconds=120.0,
        )
        (session,) = (await made.service.run(request)).sessions
    assert (session.status, session.error, session.reward) == (SessionStatus.COMPLETED, None, 1.0)
    (trace,) = session.traces
    assert len(engine.served) == 3
    assert trace.token_ids.tolist() == engine.served[-1].context + engine.served[-1].sampled
    sampled = [token for served in engine.served for token in served.sampled]
    assert trace.token_ids[trace.loss_mask].tolist() == sampled
    logprobs = [pytest.approx(one) for served in engine.served for one in served.logprobs]
    assert trace.logprobs[trace.loss_mask].tolist() == logprobs
