# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A whole service in one process, to be killed: it submits one task and prints every event until that has ended.

python -m tests.support.service_process STORE_URL DIRECTORY ENGINE_URL TOKENIZER HARNESS_COMMAND SAMPLES
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, serve
from nemo_gym_polar.rollouts.control.coordinator import LOCAL, Coordinator
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.store.store import Store
from tests.support.rollouts import task


async def main(store_url: str, directory: Path, url: str, tokenizer: str, command: str, samples: int) -> None:
    (directory / "journals").mkdir(parents=True, exist_ok=True)
    (directory / "gateway.sock").unlink(missing_ok=True)
    engine = EngineSettings(urls=(url,), model="tiny", tokenizer=tokenizer, renderer_options={"enable_thinking": False})
    settings = RolloutSettings(directory=directory, init_workers=1, ready_buffer=1, run_workers=2, postrun_workers=1)
    async with (
        Store(store_url) as store,
        Gateway(make_engine(engine), GatewaySettings(journals=directory / "journals")) as gateway,
        serve(gateway, uds=directory / "gateway.sock") as server,
        Coordinator(store, ControlSettings(directory=directory, max_attempts=10)) as control,
    ):
        node = LocalNode("local", gateway, server, settings)
        await control.add_node(node, kind=LOCAL)
        submitted = await control.submit(task(command, num_samples=samples))
        async for event in control.events():
            print(event.id, event.kind, flush=True)
            if event.kind.startswith("task.") and event.kind != "task.submitted":
                break
        assert submitted.total_sessions == samples
        await node.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:6], int(sys.argv[6])))
