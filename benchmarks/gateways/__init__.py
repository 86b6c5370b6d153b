# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What stands between an agent and an engine: ours, the peers', and the floors. A file for each, by name."""

from __future__ import annotations

from gateways.agentcore import AgentCore
from gateways.agentlightning import AgentLightning
from gateways.base import Endpoint, FailedError, Gateway, Place
from gateways.floors import Direct, RecordingProxy, SGLangRouter
from gateways.litellm import LiteLLM
from gateways.nemo_gym import NeMoGym
from gateways.polar import Polar
from gateways.rllm import RLLM

__all__ = ["GATEWAYS", "Endpoint", "FailedError", "Gateway", "Place"]

GATEWAYS: dict[str, Gateway] = {
    gateway.name: gateway
    for gateway in (
        Direct(),
        Polar("polar"),
        Polar("polar-2ms", window=0.002),
        Polar("polar-tmpfs", tmpfs=True),
        Polar("polar-chat", chat=True),
        SGLangRouter(),
        RecordingProxy(),
        AgentCore(),
        RLLM("rllm"),
        RLLM("rllm-sqlite", store="sqlite"),
        AgentLightning(),
        NeMoGym("nemo-gym"),
        NeMoGym("nemo-gym-delta", delta=True),
        NeMoGym("nemo-gym-no-capture", capture=False),
        LiteLLM(),
    )
}
