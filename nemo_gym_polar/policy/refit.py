# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Puts new weights into a running engine by vLLM's HTTP calls, which the embedded engine answers too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import aiohttp

_PATIENCE = aiohttp.ClientTimeout(total=600)


class RefitError(Exception):
    """The engine refused new weights, or can't be reached."""


async def load_weights(
    url: str,
    directory: Path,
    version: str,
    *,
    in_flight: Literal["wait", "abort", "keep"] = "wait",
    api_key: str | None = None,
) -> None:
    """Replace the weights of the engine at `url` by those of `directory` and stamp what it samples with `version`.

    `in_flight` says what becomes of answers being sampled: `wait` for their end, `abort` them, or `keep` them and go
    on under the new weights. Sampling goes on afterwards in any case, also when the new weights are refused. `api_key`
    is for an engine that asks for one.
    """
    reload = _reload_call(directory)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        async with aiohttp.ClientSession(url, headers=headers, timeout=_PATIENCE) as session:
            await _post(session, "/pause", {"mode": in_flight})
            try:
                await _post(session, "/collective_rpc", json=reload)
                await _post(session, "/reset_prefix_cache")
                await _post(session, "/update_weight_version", json={"new_version": version})
            finally:
                await _post(session, "/resume")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise RefitError(f"the engine at {url} can't be reached for new weights: {error}") from error


def _reload_call(directory: Path) -> dict[str, Any]:
    return {"method": "reload_weights", "kwargs": {"weights_path": str(directory.resolve())}}


async def _post(
    session: aiohttp.ClientSession, path: str, query: Mapping[str, str] | None = None, json: Any = None
) -> None:
    async with session.post(path, params=query, json=json) as reply:
        if reply.status != 200:
            said = (await reply.text())[:300]
            raise RefitError(f"the engine answered POST {path} with {reply.status}: {said}")
