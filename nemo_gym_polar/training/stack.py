# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a run needs around the trainer: an engine, the gateway before it, and the rollout service over both."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_gym_polar.engines.factory import EngineSettings as EngineAddress
from nemo_gym_polar.engines.factory import Mode, make_engine
from nemo_gym_polar.gateway import Gateway, serve
from nemo_gym_polar.policy.process import EngineProcess
from nemo_gym_polar.policy.refit import load_weights
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.stages import Gauges
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.run_dir import RunDir
from nemo_gym_polar.training.run_settings import EngineSettings, TrainSettings


@dataclass(frozen=True, slots=True)
class Stack:
    """`lost` returns when the engine's process has ended, with what to say about it; never for a foreign engine."""

    service: RolloutService
    gateway: Gateway
    engine_url: str
    lost: Callable[[], Coroutine[Any, Any, str]]
    settings: EngineSettings

    async def push(self, directory: Path, version: int) -> None:
        """Have the engine sample from the weights in `directory`."""
        key = self.settings.api_key
        await load_weights(
            self.engine_url,
            directory,
            str(version),
            in_flight=self.settings.in_flight,
            api_key=key.get_secret_value() if key else None,
            sglang=self.settings.kind == "sglang",
        )
        self.gateway.resume(str(version))


@asynccontextmanager
async def running(
    settings: TrainSettings, policy: Path, version: int, run: RunDir, on_change: Callable[[Gauges], None]
) -> AsyncIterator[Stack]:
    """Everything up, sampling from the weights of `policy` as `version`; everything down at the end."""
    async with AsyncExitStack() as stack:
        url, lost = await _engine(stack, settings.engine, policy, version, run)
        engine = _gateway_engine(settings.engine, url, policy)
        gateway = await stack.enter_async_context(Gateway(engine, settings.gateway_settings(run.journals)))
        await engine.engine.check()
        # A socket's path may have 107 bytes, so it lies in the system's own temporary directory.
        sockets = stack.enter_context(tempfile.TemporaryDirectory(prefix="polar-"))
        uds = Path(sockets) / "gateway.sock"
        server = await stack.enter_async_context(serve(gateway, port=settings.engine.port, uds=uds))
        rollouts = RolloutService.over(gateway, server, settings.rollout_settings(run.path), on_change)
        service = await stack.enter_async_context(rollouts)
        made = Stack(service, gateway, url, lost, settings.engine)
        if settings.engine.url:
            await made.push(policy, version)
        yield made


async def _engine(
    stack: AsyncExitStack, settings: EngineSettings, policy: Path, version: int, run: RunDir
) -> tuple[str, Callable[[], Coroutine[Any, Any, str]]]:
    if settings.url:
        return settings.url.rstrip("/").removesuffix("/v1"), _never
    log = run.path / "engine.log"
    options = {
        "--served-model-name": settings.model,
        "--weight-version": version,
        "--device": settings.device,
        "--threads": settings.threads,
        "--max-num-seqs": settings.sequences,
    }
    words = [str(word) for pair in options.items() for word in pair]
    process = EngineProcess(policy, log=log, options=words, startup_seconds=settings.startup_seconds)
    engine = await stack.enter_async_context(process)

    async def lost() -> str:
        return f"the engine ended with status {await engine.ended()}; its last words are in {log}"

    return engine.url, lost


def _gateway_engine(settings: EngineSettings, url: str, policy: Path) -> Mode:
    address = EngineAddress(
        urls=(url,),
        model=settings.model,
        kind=settings.kind,
        logprobs=settings.logprobs,
        tokenizer=str(policy),
        renderer=settings.renderer,
        renderer_options=settings.renderer_options,
        history=settings.history,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout=settings.timeout,
    )
    try:
        return make_engine(address)
    except (ValueError, FileNotFoundError) as error:
        raise TrainingError(str(error)) from error


async def _never() -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("a future that nobody resolves was resolved")
