# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import psutil
import pytest

from nemo_gym_polar.policy.process import EngineProcess, EngineProcessError
from nemo_gym_polar.policy.refit import RefitError, load_weights
from tests.support.policies import saved, small_tokenizer, wild_policy

PARENT = """
import asyncio, sys
from pathlib import Path
from nemo_gym_polar.policy.process import EngineProcess

async def main():
    async with EngineProcess(Path(sys.argv[1])) as engine:
        print(engine.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def policy_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = small_tokenizer()
    return saved(wild_policy(tokenizer, seed=1), tokenizer, tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def other_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = small_tokenizer()
    return saved(wild_policy(tokenizer, seed=2), tokenizer, tmp_path_factory.mktemp("other"))


async def generate(url: str) -> dict[str, object]:
    body = {"token_ids": [1, 2, 3], "sampling_params": {"max_tokens": 3, "logprobs": 0}}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/inference/v1/generate", json=body) as reply:
        answer = await reply.json()
        return dict(answer["choices"][0])


async def test_it_serves_takes_weights_and_ends(policy_dir: Path, other_dir: Path, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    async with EngineProcess(policy_dir, log=log, options=["--weight-version", "7"]) as engine:
        assert engine.alive
        assert (await generate(engine.url))["weight_versions"] == [{"version": "7", "start": 0, "end": 3}]
        await engine.load_weights(other_dir, "8")
        assert (await generate(engine.url))["weight_versions"] == [{"version": "8", "start": 0, "end": 3}]
        with pytest.raises(RefitError, match=r"answered POST /collective_rpc with 400.*holds neither"):
            await engine.load_weights(tmp_path, "9")
        assert (await generate(engine.url))["weight_versions"] == [{"version": "8", "start": 0, "end": 3}]
        pid = engine.pid
    assert await engine.ended() == 0
    assert not psutil.pid_exists(pid)
    assert log.read_text() == ""


async def test_its_death_is_noticed(policy_dir: Path) -> None:
    async with EngineProcess(policy_dir) as engine:
        os.kill(engine.pid, signal.SIGKILL)
        assert await asyncio.wait_for(engine.ended(), 60) == -signal.SIGKILL
        assert not engine.alive
        with pytest.raises(EngineProcessError, match="ended with status -9"):
            await engine.load_weights(policy_dir, "1")
        with pytest.raises(RefitError, match="can't be reached for new weights"):
            await load_weights(engine.url, policy_dir, "1")


async def test_it_dies_with_its_parent(policy_dir: Path) -> None:
    command = (sys.executable, "-c", PARENT, str(policy_dir))
    parent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    engine = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await asyncio.to_thread(engine.wait, 50)


async def test_a_failed_start_says_why(tmp_path: Path) -> None:
    message = (
        r"ended with status 1 before it was ready; .*policy server: .*config.json is missing; give a model directory"
    )
    with pytest.raises(EngineProcessError, match=message):
        async with EngineProcess(tmp_path, log=tmp_path / "log"):
            pass


async def test_a_slow_start_is_given_up(policy_dir: Path) -> None:
    with pytest.raises(EngineProcessError, match=r"not ready within 0\.01 s"):
        async with EngineProcess(policy_dir, startup_seconds=0.01):
            pass


async def test_a_unix_socket(policy_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    async with EngineProcess(policy_dir, options=["--uds", str(path)]) as engine:
        assert engine.url == f"unix:{path}"
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session,
            session.get("http://engine/v1/models") as reply,
        ):
            assert reply.status == 200
    assert not path.exists()
