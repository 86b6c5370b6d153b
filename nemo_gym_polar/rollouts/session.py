# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The life of one session: INIT, READY, RUNNING, POSTRUN.

Invariant: however it ends, its sandbox is stopped and its gateway session finished, each exactly once, and what was
captured is built. A harness that fails or runs out of time still gets scored.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from nemo_gym_polar.evaluators.base import Evaluation, EvaluatorError, EvaluatorTimeoutError, Score
from nemo_gym_polar.forest.errors import ForestError
from nemo_gym_polar.rollouts import scoring
from nemo_gym_polar.rollouts.cleanup import to_the_end
from nemo_gym_polar.rollouts.deadline import Deadline
from nemo_gym_polar.rollouts.plan import Plan
from nemo_gym_polar.rollouts.prewarm import Prewarm
from nemo_gym_polar.rollouts.redaction import without
from nemo_gym_polar.rollouts.sandbox import furnish
from nemo_gym_polar.rollouts.settings import PartialRule, RolloutSettings
from nemo_gym_polar.rollouts.sources import Collected, OpenSession, SessionSource
from nemo_gym_polar.rollouts.stages import Pools, Stage, Track
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.runtimes.base import Exit, Runtime, SandboxError

NOTHING = Collected((), {}, 0)
MARGIN = 20.0  # seconds past its own limit after which a stage is given up; the parts of a stage keep their own time


class SessionRun:
    def __init__(
        self,
        plan: Plan,
        sample: int,
        source: SessionSource,
        settings: RolloutSettings,
        pools: Pools,
        on_stage: Callable[[Stage], None] | None = None,
    ) -> None:
        self.plan = plan
        self.sample = sample
        self.source = source
        self.settings = settings
        self.pools = pools
        self.track = Track(pools, on_stage)
        self.deadline = Deadline(plan.request.timeout_seconds)
        self.status = SessionStatus.COMPLETED
        self.error: str | None = None
        self.session: OpenSession | None = None
        self.runtime: Runtime | None = None
        self.prewarm: Prewarm | None = None
        self.ended: Exit | None = None
        self.collected = NOTHING
        self.score = Score(0.0)
        self.dropped: Counter[str] = Counter()
        self.metadata: dict[str, Any] = {}
        self.opening: asyncio.Task[OpenSession] | None = None
        self.finishing: asyncio.Task[Collected] | None = None
        self.scored = False
        self.cancelled = False

    async def run(self) -> SessionResult:
        try:
            await self.stages()
        finally:
            try:
                await to_the_end(self.release())
            finally:
                self.track.move(None)
        return self.result()

    async def stages(self) -> None:
        priority = self.plan.priority
        self.track.move(Stage.QUEUED)
        async with AsyncExitStack() as room:
            async with self.pools.init.place(priority):
                await room.enter_async_context(self.pools.rooms.place(priority))
                self.track.move(Stage.INIT)
                self.deadline.start()
                ready = await self.attempt(self.prepare, self.deadline.left)
            if ready:
                self.track.move(Stage.READY)
                await self.when_there_is_a_place(priority)
            self.track.move(Stage.FINISHED)
            await self.pools.postrun.acquire(priority)
        try:
            self.track.move(Stage.POSTRUN)
            await self.attempt(self.postrun, self.scoring_left() + MARGIN)
            await to_the_end(self.release())
        finally:
            self.track.move(None)
            self.pools.postrun.release()

    async def when_there_is_a_place(self, priority: int) -> None:
        """Run the harness; not at all if the deadline comes before a place does."""
        if not await self.attempt(partial(self.pools.run.acquire, priority), self.deadline.left):
            return
        try:
            self.track.move(Stage.RUNNING)
            await self.attempt(self.execute, self.deadline.left + MARGIN)
        finally:
            self.pools.run.release()

    def left(self) -> float:
        """Seconds until the session's deadline."""
        return self.deadline.left

    def scoring_left(self) -> float:
        """Seconds for all that is done for the score: a little even where the harness used the deadline up."""
        return max(self.deadline.left, self.settings.postrun_grace)

    async def attempt(self, work: Callable[[], Awaitable[None]], seconds: float) -> bool:
        """Do the work of a stage within `seconds`; what can go wrong there becomes the session's status."""
        try:
            async with asyncio.timeout(seconds):
                await work()
        except TimeoutError:
            self.fail(SessionStatus.TIMEOUT, f"the session's {self.deadline.seconds:.0f} s ended in {self.track.stage}")
        except (SandboxError, ForestError, EvaluatorError, OSError) as error:
            self.fail(SessionStatus.ERROR, str(error))
        else:
            return True
        return False

    def fail(self, status: SessionStatus, error: str) -> None:
        """The first failure names the session's status; later ones are its consequences."""
        if self.status is SessionStatus.COMPLETED:
            self.status, self.error = status, error

    # INIT

    async def prepare(self) -> None:
        opening = self.source.open(self.plan.request, self.sample, self.deadline.at)
        self.opening = asyncio.create_task(opening)
        self.session = await asyncio.shield(self.opening)
        await self.warm(self.session)

    async def warm(self, session: OpenSession) -> None:
        """Start a sandbox and make it ready for the harness."""
        self.runtime = self.plan.runtime(session)
        await furnish(self.runtime, self.plan.files(self.runtime), self.plan.prepare, self.left, self.track)

    # RUNNING

    async def execute(self) -> None:
        assert self.session and self.runtime
        if not await self.runtime.alive():  # it died while it waited
            await self.runtime.stop()
            await self.warm(self.session)
            self.metadata["sandbox_restarts"] = 1
        if self.plan.refreshes:
            self.prewarm = Prewarm(self.plan, self.track, self.scoring_left)
            self.prewarm.begin()
        launch = self.plan.harness.launch(self.plan.context(self.session, self.runtime))
        for path, data in launch.files.items():
            await self.runtime.write(path, data)
        env = {**launch.env, **self.plan.request.agent.env}
        limit = min(self.deadline.left, self.plan.agent_timeout or self.deadline.left)
        log, hidden = self.directory / "harness.log", (self.session.secret,)
        self.ended = await self.runtime.run(launch.argv, env=env, timeout=limit, log=log, hidden=hidden)

    @property
    def directory(self) -> Path:
        return self.settings.directory / "sessions" / (self.session.id if self.session else "unopened")

    # POSTRUN

    async def postrun(self) -> None:
        if self.session:
            await self.collect({"harness": described(self.ended)})
        self.judge()
        if self.runtime and self.ended:
            await self.evaluate(self.runtime)

    async def collect(self, outcome: dict[str, Any]) -> None:
        """Finish the gateway session and take what it captured. Cancelling this doesn't leave it half finished."""
        assert self.session
        finishing = self.source.finish(self.session.id, self.plan.request.builder, outcome)
        self.finishing = asyncio.create_task(finishing)
        with self.track.measure("build"):
            self.take(await asyncio.shield(self.finishing))

    def take(self, collected: Collected) -> None:
        self.collected = collected
        self.dropped = Counter(collected.dropped)

    def judge(self) -> None:
        """Take the harness's verdict over into the session's status."""
        if self.ended is None:
            return
        status, reason = self.plan.harness.status(self.ended, self.collected.turns)
        self.metadata |= {"harness_status": status, "harness": described(self.ended)}
        if status == "timeout":
            self.fail(SessionStatus.TIMEOUT, reason)
        elif status == "failed" and self.collected.exhausted:
            self.fail(SessionStatus.TIMEOUT, f"the session used up its {self.collected.exhausted}")
        elif status == "failed":
            self.fail(SessionStatus.ERROR, reason)

    async def evaluate(self, runtime: Runtime) -> None:
        with self.track.measure("evaluate"):
            try:
                evaluation = await self.evaluation(runtime)
                score = await self.plan.evaluator.evaluate(evaluation)
                self.score, self.scored = scoring.check_score(score, self.collected.traces), True
            except EvaluatorTimeoutError as error:
                self.unscored(SessionStatus.TIMEOUT, str(error))
            except (EvaluatorError, SandboxError) as error:
                self.unscored(SessionStatus.ERROR, str(error))

    async def evaluation(self, runtime: Runtime) -> Evaluation:
        fresh = await self.prewarm.take() if self.prewarm else None
        if self.prewarm and self.prewarm.restarts:
            self.metadata["evaluator_restarts"] = self.prewarm.restarts
        return Evaluation(
            fresh or runtime,
            self.collected.traces,
            str(self.metadata["harness_status"]),
            self.scoring_left(),
            self.plan.request.evaluator.env,
            runtime if fresh else None,
        )

    def unscored(self, status: SessionStatus, error: str) -> None:
        """How the harness ended stays what names the session; that it could not be scored is said besides."""
        if self.error:
            self.error = f"{self.error}; not scored: {error}"
        self.fail(status, error)

    # The end

    async def release(self) -> None:
        """Free what is still held, whatever happened. Safe to call again."""
        runtime, self.runtime = self.runtime, None
        prewarm, self.prewarm = self.prewarm, None
        try:
            if runtime:
                await runtime.stop()
        finally:
            try:
                if prewarm:
                    await prewarm.release()
            finally:
                await self.close()

    async def close(self) -> None:
        """Finish the gateway session if no stage did; opening or finishing goes on where a stage was cut off in it."""
        if self.opening and not self.session:
            await asyncio.wait([self.opening])
            self.session = None if self.opening.exception() else self.opening.result()
        if self.session and not self.finishing:
            await self.collect({"harness": described(None)})
        elif self.finishing:
            await asyncio.wait([self.finishing])
            if not self.finishing.exception():
                self.take(self.finishing.result())

    def result(self) -> SessionResult:
        if self.cancelled:
            self.status, self.error = SessionStatus.CANCELLED, "cancelled"
        reward = scoring.apply(self.score, self.collected.traces, self.rule, self.dropped)
        for trace in self.collected.traces:
            trace.group = self.plan.request.task_id
        secret = self.session.secret if self.session else ""
        first = self.collected.first_prompt
        return SessionResult(
            session_id=self.session.id if self.session else "",
            task_id=self.plan.request.task_id,
            sample=self.sample,
            status=self.status,
            reward=reward,
            traces=list(self.collected.traces),
            conversations=without(secret, list(self.collected.conversations)),
            dropped=dict(self.dropped),
            timing=self.track.seconds,
            error=without(secret, self.error),
            metadata=without(secret, self.about()),
            first_prompt=first.digest.hex() if first else None,
        )

    def about(self) -> dict[str, Any]:
        task, turns = self.plan.request.metadata, self.collected.turns
        evaluation = dict(self.score.detail)
        return {**task, **self.metadata, **self.collected.metadata, "turns": turns, "evaluation": evaluation}

    @property
    def rule(self) -> PartialRule:
        """Of a session that was taken back nothing is learned, whatever the settings say."""
        if self.status is SessionStatus.CANCELLED:
            return PartialRule.MASK
        if not self.scored:
            return self.settings.unscored_runs
        if self.status is SessionStatus.COMPLETED:
            return PartialRule.TRAIN
        return self.settings.timeout_runs if self.status is SessionStatus.TIMEOUT else self.settings.failed_runs


def described(ended: Exit | None) -> dict[str, Any]:
    if ended is None:
        return {"started": False}
    return {"exit_code": ended.code, "killed_for": ended.killed_for, "seconds": round(ended.seconds, 3)}
