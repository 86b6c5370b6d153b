# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Hands new weights to a running engine by vLLM's calls: pause, reload, reset the cache, set the version, resume.

Works on the embedded policy server, and on vLLM started with VLLM_SERVER_DEV_MODE=1 that sees the same files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import aiohttp

from nemo_gym_polar.training.errors import TrainingError

PauseMode = Literal["wait", "abort", "keep"]


class EngineClient:
    """One engine at `base_url`, without /v1. `pause` says what becomes of running requests: they end first (`wait`),
    are cut off (`abort`), or go on under the new weights (`keep`). Seconds bound each call."""

    def __init__(
        self, base_url: str, *, api_key: str | None = None, pause: PauseMode = "wait", seconds: float = 300.0
    ) -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._pause = pause
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=seconds))

    async def push(self, directory: Path, version: str) -> None:
        """Make the engine sample from the weights in `directory` and stamp its answers with `version`.

        If a call fails, TrainingError says which one. The engine then stays paused: nothing is sampled under weights
        that nobody knows.
        """
        await self._post("pause", params={"mode": self._pause})
        await self._post("collective_rpc", body=_reload_from(directory))
        await self._post("reset_prefix_cache")
        await self._post("update_weight_version", body={"new_version": version})
        await self._post("resume")

    async def close(self) -> None:
        await self._session.close()

    async def __aenter__(self) -> EngineClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _post(self, call: str, *, params: dict[str, str] | None = None, body: Any = None) -> None:
        url = f"{self.base_url}/{call}"
        try:
            async with self._session.post(url, params=params, json=body) as response:
                if response.status >= 400:
                    raise TrainingError(_refusal(url, response.status, await response.text()))
                await response.read()
        except TimeoutError as error:
            raise TrainingError(f"the engine did not answer {url} in time; is it overloaded or stuck?") from error
        except aiohttp.ClientError as error:
            raise TrainingError(f"the engine can't be reached at {url}: {error}; has it ended?") from error


def _reload_from(directory: Path) -> dict[str, Any]:
    """The engine has a working directory of its own."""
    return {"method": "reload_weights", "kwargs": {"weights_path": str(directory.resolve())}}


def _refusal(url: str, status: int, text: str) -> str:
    if status == 404:
        return f"the engine has no {url}; start vLLM with VLLM_SERVER_DEV_MODE=1"
    return f"the engine refused {url} with {status}: {' '.join(text.split())[:300]}"
