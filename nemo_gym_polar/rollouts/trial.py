# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Does a harness work here? One real session of it against a scripted engine, and what came of it.

Everything but the model is what a training run uses: the installed program, the sandbox, the gateway, the builder.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nemo_gym_polar.engines.factory import TokensMode
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.scripted import ScriptedEngine, Served, tool_call
from nemo_gym_polar.gateway import Gateway, GatewaySettings, serve
from nemo_gym_polar.gateway.settings import SamplingProfile
from nemo_gym_polar.harnesses.base import ShellTool
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.task import (
    AgentSpec,
    EvaluatorSpec,
    RuntimeSpec,
    SessionResult,
    SessionStatus,
    TaskRequest,
)

FILE = "polar-check.txt"
TURNS = 3  # that use a tool; one more says that it is done
CONTEXT = 1_000_000  # tokens; the longest prompts have tens of thousands with a small vocabulary
ANSWER = 4096
MISSING = (126, 127)  # exit codes of a shell that can't start a program
RESULT = "<tool_response>"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was to work."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a trial found."""

    harness: str
    seconds: float
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(slots=True)
class Policy:
    """Appends a line to a file with the harness's shell tool, `TURNS` times, and then says that it is done.

    Results are counted from the first context on, in case the harness's own prompt shows one.
    """

    tool: ShellTool
    before: int | None = field(default=None)

    def __call__(self, context: str) -> str:
        if self.tool.name not in context:
            return "Done."  # a side call without tools
        seen = context.count(RESULT)
        self.before = seen if self.before is None else self.before
        number = seen - self.before + 1
        if number > TURNS:
            return "Done."
        command = f"echo line {number} >> {FILE}"
        return tool_call(self.tool.name, {self.tool.argument: command, **self.tool.others})


async def try_harness(
    name: str, rendering: Rendering, *, settings: Mapping[str, Any] | None = None, backend: str, seconds: float
) -> Report:
    """Raises `HarnessError` if the harness can't be configured, `RolloutError` if it can't be installed."""
    began = time.monotonic()
    engine = ScriptedEngine(rendering.tokenizer, Policy(make_harness(name, settings).about.shell_tool))
    request = TaskRequest(
        task_id=f"check-{name}",
        instruction=f"Write three lines into {FILE} in the current directory, one after the other.",
        timeout_seconds=seconds,
        agent=AgentSpec(harness=name, settings=dict(settings or {})),
        runtime=RuntimeSpec(backend=backend),
        evaluator=EvaluatorSpec(config={"command": f'test "$(cat {FILE})" = "$(printf "line %d\\n" $(seq {TURNS}))"'}),
    )
    with tempfile.TemporaryDirectory(prefix="polar-check-") as directory:
        result = await session(TokensMode(engine, rendering), request, Path(directory))
    return Report(name, round(time.monotonic() - began, 1), findings(result, engine.served))


async def session(engine: TokensMode, request: TaskRequest, directory: Path) -> SessionResult:
    (directory / "journals").mkdir()
    limits = SamplingProfile(max_tokens=ANSWER)
    settings = GatewaySettings(journals=directory / "journals", context_tokens=CONTEXT, sampling=limits)
    async with (
        Gateway(engine, settings) as gateway,
        serve(gateway, uds=directory / "gateway.sock") as server,
        RolloutService.over(gateway, server, RolloutSettings(directory=directory)) as service,
    ):
        (result,) = (await service.run(request)).sessions
        return result


def findings(result: SessionResult, served: Sequence[Served]) -> tuple[Finding, ...]:
    """In the order in which a session gets to them: the first that is not ok names the trouble."""
    harness = result.metadata.get("harness", {})
    turns = result.metadata["turns"]
    started = harness.get("exit_code", MISSING[0]) not in MISSING
    scored = result.metadata.get("evaluation", {})
    return (
        Finding("started", started or turns > 0, str(result.error or "") if not started else "its program ran"),
        Finding("gateway", turns > 0, "the model was asked" if turns else str(result.error or "no call came")),
        Finding("turns", turns == TURNS + 1, f"{turns} of {TURNS + 1}"),
        Finding("tool", result.reward == 1.0, "the file has its lines" if result.reward == 1.0 else changed(scored)),
        one_chain(result, served),
        Finding("verdict", result.status is SessionStatus.COMPLETED, result.error or result.status.lower()),
    )


def changed(evaluation: Mapping[str, Any]) -> str:
    why = str(evaluation.get("stderr") or "").strip()
    return f"{FILE} is not as it should be{': ' if why else ''}{why}"


def one_chain(result: SessionResult, served: Sequence[Served]) -> Finding:
    """All that was sampled is trained on, once, in one trace, in the context that it was sampled in."""
    main = [trace for trace in result.traces if trace.kind == "main"]
    sampled = sum(len(answer.sampled) for answer in served)
    kept = main[0].token_ids[main[0].loss_mask] if len(main) == 1 else np.empty(0, np.int32)
    exact = bool(main and served) and np.array_equal(kept, np.concatenate([answer.sampled for answer in served]))
    whole = exact and np.array_equal(main[0].token_ids, np.concatenate([served[-1].context, served[-1].sampled]))
    detail = f"{len(main)} main of {len(result.traces)} traces, {len(kept)} of {sampled} sampled tokens"
    return Finding("tokens", whole, f"{detail}{f', dropped: {result.dropped}' if result.dropped else ''}")
