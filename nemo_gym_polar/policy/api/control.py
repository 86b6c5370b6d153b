# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a trainer calls between steps, under vLLM's names: pause, new weights, version, resume."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.api.replies import json_response, unless_disconnected
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.engine import PauseMode
from nemo_gym_polar.policy.weights import WeightsError

_MODES: dict[str, PauseMode] = {mode: mode for mode in get_args(PauseMode)}


async def pause(service: PolicyService, request: Request) -> Response:
    """Answers when sampling has stopped. New requests are accepted, and wait for `/resume`."""
    asked = request.query_params.get("mode", "abort")
    if asked not in _MODES:
        raise ApiError(f"mode={asked!r} is not valid: expected {', '.join(_MODES)}.", param="mode")
    await request.body()
    await unless_disconnected(request, asyncio.ensure_future(service.engine.pause(_MODES[asked])))
    return json_response({"status": "paused"})


async def resume(service: PolicyService, _: Request) -> Response:
    await service.engine.resume()
    return json_response({"status": "resumed"})


async def is_paused(service: PolicyService, _: Request) -> Response:
    return json_response({"is_paused": service.engine.paused})


async def collective_rpc(service: PolicyService, request: Request) -> Response:
    """`reload_weights` of `kwargs.weights_path`, or of the served directory; sets `kwargs.weight_version` if given."""
    fields = await Fields.read(request)
    fields.refuse("method", "reload_weights", remedy="only 'reload_weights' can be called")
    fields.required_text("method")
    arguments = fields.section("kwargs")
    directory = Path(arguments.text("weights_path") or service.directory)
    try:
        await service.engine.load(directory, arguments.text("weight_version"))
    except WeightsError as error:
        raise ApiError(f"{error} (the weights before stay in use).", param="kwargs.weights_path") from error
    return json_response({"results": [None]})


async def update_weight_version(service: PolicyService, request: Request) -> Response:
    fields = await Fields.read(request)
    await service.engine.set_version(fields.required_text("new_version"))
    return json_response({"success": True, "new_version": service.engine.version})


async def weight_info(service: PolicyService, _: Request) -> Response:
    return json_response({"weight_version": service.engine.version})


async def reset_prefix_cache(_: PolicyService, __: Request) -> Response:
    """Nothing to do: prompts are read anew for every request."""
    return json_response({"status": "ok"})
