# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Puts new weights into a running engine: by vLLM's HTTP calls, which the embedded engine answers too, or SGLang's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import aiohttp

InFlight = Literal["wait", "abort", "keep"]

_PATIENCE = aiohttp.ClientTimeout(total=600)


class RefitError(Exception):
    """The engine refused new weights, or can't be reached."""


async def load_weights(
    url: str,
    directory: Path,
    version: str,
    *,
    in_flight: InFlight = "wait",
    api_key: str | None = None,
    sglang: bool = False,
) -> None:
    """Replace the weights of the engine at `url` by those of `directory` and stamp what it samples with `version`.

    `in_flight` says what becomes of answers being sampled: `wait` for their end, `abort` them, or `keep` them and go
    on under the new weights. Sampling goes on afterwards in any case, also when the new weights are refused. `api_key`
    is for an engine that asks for one. `sglang` says that the engine is one; any other is asked as vLLM is.
    """
    replace = _replace_in_sglang if sglang else _replace_in_vllm
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    # vLLM hangs up after a refusal; on a connection that is kept, the call to resume would be lost.
    alone = aiohttp.TCPConnector(force_close=True)
    try:
        async with aiohttp.ClientSession(url, headers=headers, timeout=_PATIENCE, connector=alone) as session:
            await replace(session, directory, version, in_flight)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise RefitError(f"the engine at {url} can't be reached for new weights: {error}") from error


async def _replace_in_vllm(session: aiohttp.ClientSession, directory: Path, version: str, in_flight: InFlight) -> None:
    await _post(session, "/pause", {"mode": in_flight})
    try:
        await _post(session, "/collective_rpc", json=_reload_call(directory))
        await _post(session, "/reset_prefix_cache")
        await _post(session, "/update_weight_version", json={"new_version": version})
    finally:
        await _post(session, "/resume")


async def _replace_in_sglang(
    session: aiohttp.ClientSession, directory: Path, version: str, in_flight: InFlight
) -> None:
    """SGLang waits for the end of answers by itself; to keep them it must be paused, and reads their contexts again."""
    update = _update_call(directory, version) | {"abort_all_requests": in_flight == "abort"}
    if in_flight != "keep":
        await _post(session, "/update_weights_from_disk", json=update)
        return
    await _post(session, "/pause_generation", json={"mode": "retract"})
    try:
        await _post(session, "/update_weights_from_disk", json=update)
    finally:
        await _post(session, "/continue_generation", json={})


def _reload_call(directory: Path) -> dict[str, Any]:
    return {"method": "reload_weights", "kwargs": {"weights_path": str(directory.resolve())}}


def _update_call(directory: Path, version: str) -> dict[str, Any]:
    return {"model_path": str(directory.resolve()), "weight_version": version, "flush_cache": True}


async def _post(
    session: aiohttp.ClientSession, path: str, query: Mapping[str, str] | None = None, json: Any = None
) -> None:
    async with session.post(path, params=query, json=json) as reply:
        if reply.status != 200:
            said = (await reply.text())[:300]
            raise RefitError(f"the engine answered POST {path} with {reply.status}: {said}")
