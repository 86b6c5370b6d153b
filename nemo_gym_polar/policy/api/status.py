# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Is it up, what does it serve, how busy is it."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar import __version__
from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.replies import json_response
from nemo_gym_polar.policy.api.service import PolicyService


async def health(service: PolicyService, _: Request) -> Response:
    if not service.engine.alive:
        raise ApiError("The engine has stopped; start the server again.", status=503)
    return Response(status_code=200)


async def version(_: PolicyService, __: Request) -> Response:
    return json_response({"version": __version__})


async def models(service: PolicyService, _: Request) -> Response:
    model = {
        "id": service.name,
        "object": "model",
        "created": service.created,
        "owned_by": "nemo-gym-polar",
        "root": str(service.directory),
        "parent": None,
        "max_model_len": service.limit,
    }
    return json_response({"object": "list", "data": [model]})


async def metrics(service: PolicyService, _: Request) -> Response:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(service))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Collector:
    """Reads the engine when the metrics are asked for; nothing is counted twice."""

    def __init__(self, service: PolicyService) -> None:
        self._engine = service.engine

    def collect(self) -> list[Metric]:
        engine, gauge = self._engine, GaugeMetricFamily
        return [
            gauge("polar_engine_requests_running", "Answers being sampled", engine.running),
            gauge("polar_engine_requests_waiting", "Answers waiting for a row", engine.waiting),
            gauge("polar_engine_paused", "1 while sampling is paused", float(engine.paused)),
            CounterMetricFamily("polar_engine_prompt_tokens", "Prompt tokens read", engine.prompt_tokens),
            CounterMetricFamily("polar_engine_sampled_tokens", "Tokens sampled", engine.sampled_tokens),
            CounterMetricFamily("polar_engine_weight_loads", "Times that weights were replaced", engine.weight_loads),
            InfoMetricFamily("polar_engine_weights", "The weights in use", {"version": engine.version}),
        ]
