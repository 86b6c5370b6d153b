# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set about the service's HTTP side."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class ApiSettings(BaseModel):
    """A request larger than `max_body_bytes` is refused. Event streams say something every `keep_alive` seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    max_body_bytes: Annotated[int, Field(ge=1)] = 16 * 1024 * 1024
    keep_alive: Annotated[float, Field(gt=0)] = 15.0


def require_token(host: str, token: SecretStr | None) -> None:
    """Raises `ValueError` for an address that others can reach, with nothing that keeps them out."""
    if not (token and token.get_secret_value()) and not is_loopback(host):
        raise ValueError(f"host={host} is reachable from other machines: set token, or use 127.0.0.1")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
