# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set about nodes on a Ray cluster."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from nemo_gym_polar.engines.settings import EngineSettings
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.rollouts.placed import Absolute, GatewayFields, RolloutFields
from nemo_gym_polar.rollouts.settings import RolloutSettings

AUTO = "auto"
Seconds = Annotated[float, Field(gt=0)]


class RaySettings(BaseModel):
    """Which cluster, and which of its machines get a node.

    `address` is auto or HOST:PORT of a cluster that runs already. A service's nodes live in a Ray `namespace` of its
    own: two services on one cluster need two. A node reserves `cpus` of its machine; machines that have fewer get
    none, nor do those without the custom resource `resource`, where it is given. `python` is the interpreter on the
    machines, if it is not the one that Ray was started with.

    The cluster is looked over every `watch` seconds; a node has `start_timeout` seconds to come up, and `call_timeout`
    to answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = AUTO
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "polar"
    cpus: Annotated[float, Field(ge=0)] = 1.0
    resource: str | None = None
    python: str | None = None
    watch: Seconds = 2.0
    start_timeout: Seconds = 180.0
    call_timeout: Seconds = 30.0

    @field_validator("address")
    @classmethod
    def _direct(cls, address: str) -> str:
        port = address.rpartition(":")[2]
        if address != AUTO and ("://" in address or ":" not in address or not port.isdecimal()):
            raise ValueError(f"{address!r} is no cluster's address: give auto or HOST:PORT, as `ray start` printed it")
        return address


class NodeSettings(BaseModel):
    """What every node runs. `directory` is on each machine's own disk; a node works below it, in nodes/ID.

    Its gateway listens on the machine's address, on `port` (0: any free one). A node that no service has asked for
    `abandoned_after` seconds ends itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: EngineSettings
    directory: Absolute  # a machine's own working directory is none of the caller's
    gateway: GatewayFields = {}
    rollouts: RolloutFields = {}
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    abandoned_after: Seconds = 3600.0

    def gateway_at(self, directory: Path) -> GatewaySettings:
        return GatewaySettings(**self.gateway, journals=directory / "journals")

    def rollouts_at(self, directory: Path) -> RolloutSettings:
        return RolloutSettings(**self.rollouts, directory=directory)

    @property
    def digest(self) -> str:
        """Two nodes with the same one run the same."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
