# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway's weights as a node wants them."""

from __future__ import annotations

from dataclasses import dataclass

from nemo_gym_polar.gateway import Gateway
from nemo_gym_polar.gateway.weights import NotDrainedError
from nemo_gym_polar.rollouts.nodes.base import NodeError


@dataclass(frozen=True, slots=True)
class GatewayWeights:
    """For `LocalNode(weights=…)`."""

    gateway: Gateway

    @property
    def paused(self) -> bool:
        return self.gateway.weights.paused

    @property
    def version(self) -> str | None:
        return self.gateway.policy_version

    async def pause(self, seconds: float) -> None:
        try:
            await self.gateway.pause(seconds)
        except NotDrainedError as error:
            raise NodeError(str(error)) from None

    async def resume(self, policy_version: str | None) -> None:
        self.gateway.resume(policy_version)
