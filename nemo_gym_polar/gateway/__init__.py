# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway: agents call it as if it were their provider, and it keeps every token.

async with Gateway(make_engine(engine_settings), GatewaySettings(journals=path)) as gateway, serve(gateway) as server:
    session = await gateway.open(max_turns=50)
    ...  # run a harness with base URL server.url + session.path and API key session.secret
    forest = await gateway.finish(session.id)
"""

from nemo_gym_polar.gateway.gateway import DrainingError, Gateway, UnknownSessionError
from nemo_gym_polar.gateway.server import Server, serve
from nemo_gym_polar.gateway.session import Session
from nemo_gym_polar.gateway.settings import GatewaySettings, SamplingProfile
from nemo_gym_polar.gateway.weights import NotDrainedError

__all__ = [
    "DrainingError",
    "Gateway",
    "GatewaySettings",
    "NotDrainedError",
    "SamplingProfile",
    "Server",
    "Session",
    "UnknownSessionError",
    "serve",
]
