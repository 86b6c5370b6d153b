# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a service's process, or of a node's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from nemo_gym_polar.engines.settings import EngineSettings
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.rollouts.api.settings import ApiSettings, require_token
from nemo_gym_polar.rollouts.callbacks.settings import CallbackSettings
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.placed import Absolute, GatewayFields, RolloutFields, checked
from nemo_gym_polar.rollouts.retention.settings import RetentionSettings
from nemo_gym_polar.rollouts.settings import RolloutSettings

ANYWHERE = ("0.0.0.0", "::")
Seconds = Annotated[float, Field(gt=0)]
ControlFields = Annotated[dict[str, Any], AfterValidator(partial(checked, ControlSettings, "directory"))]


class NodeOptions(BaseModel):
    """A node's name and its gateway's address. `public_url` is where the service and sandboxes reach it, if that is not
    where it listens. A node that joined says every `heartbeat` seconds that it is there. Told to stop, it takes no more
    sessions and ends once those that it has are finished, or after `shutdown_grace` seconds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    node_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = "local"
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    public_url: str | None = None
    heartbeat: Seconds = 10.0
    shutdown_grace: Annotated[float, Field(ge=0)] = 30.0

    @model_validator(mode="after")
    def _has_an_address(self) -> NodeOptions:
        if self.host in ANYWHERE and not self.public_url:
            raise ValueError(f"node.host={self.host} is no address that others can call: set node.public_url as well")
        return self


class HostSettings(BaseModel):
    """One process: the service, or with `join` a node of the service at that address.

    `directory` takes results, traces, journals and, unless `store` names another, the store. Without `engine` the
    service runs no sessions itself; nodes join it. `gateway`, `rollouts` and `control` are the fields of
    `GatewaySettings`, `RolloutSettings` and `ControlSettings` without the directories. `token` is the control token.
    `ray` puts a node on every machine of a Ray cluster, with this engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: Annotated[Absolute, Field(validate_default=True)] = Path("polar")
    store: str | None = None
    token: SecretStr | None = None
    join: str | None = None
    api: ApiSettings = ApiSettings()
    engine: EngineSettings | None = None
    gateway: GatewayFields = {}
    rollouts: RolloutFields = {}
    node: NodeOptions = NodeOptions()
    control: ControlFields = {}
    callbacks: CallbackSettings = CallbackSettings()
    retention: RetentionSettings = RetentionSettings()
    ray: dict[str, Any] | None = None

    @field_validator("engine", mode="before")
    @classmethod
    def _no_address_is_no_engine(cls, engine: Any) -> Any:
        return None if isinstance(engine, dict) and not engine.get("urls") else engine

    @model_validator(mode="after")
    def _open_doors_need_a_token(self) -> HostSettings:
        require_token(self.node.host, self.token)
        if self.join is None:
            require_token(self.api.host, self.token)
        if self.join is not None and self.engine is None:
            raise ValueError("engine.urls is empty: a node needs an engine")
        if self.ray is not None and self.engine is None:
            raise ValueError("engine.urls is empty: the nodes on Ray need an engine")
        return self

    def gateway_settings(self) -> GatewaySettings:
        return GatewaySettings(**self.gateway, journals=self.directory / "journals")

    def rollout_settings(self) -> RolloutSettings:
        return RolloutSettings(**self.rollouts, directory=self.directory)

    def control_settings(self) -> ControlSettings:
        return ControlSettings(**self.control, directory=self.directory)

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{self.directory / 'polar.db'}"
