# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A process that runs one group and prints every change of the stages, to be interrupted from outside.

python -m tests.support.rollout_process ENGINE_URL TOKENIZER DIRECTORY HARNESS_COMMAND EVALUATOR_COMMAND BACKEND
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, serve
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.stages import Gauges
from tests.support.rollouts import task


def show(gauges: Gauges) -> None:
    print(" ".join(stage for stage, number in gauges.items() if number), flush=True)


async def main(url: str, tokenizer: str, directory: Path, command: str, evaluate: str, backend: str) -> None:
    (directory / "journals").mkdir(parents=True)
    engine = EngineSettings(urls=(url,), model="tiny", tokenizer=tokenizer, renderer_options={"enable_thinking": False})
    settings = RolloutSettings(directory=directory, init_workers=1, ready_buffer=1, run_workers=1, postrun_workers=1)
    async with (
        Gateway(make_engine(engine), GatewaySettings(journals=directory / "journals")) as gateway,
        serve(gateway, uds=directory / "gateway.sock") as server,
        RolloutService.over(gateway, server, settings, show) as service,
    ):
        await service.run(task(command, evaluate=evaluate, num_samples=4, backend=backend))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:7]))
