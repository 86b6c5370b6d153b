# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who may use the routes that are not a harness's: whoever has the admin token."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException


def bearer(token: str) -> Any:
    """A dependency of routes: 401 without `token` as the bearer. It takes equally long for every wrong one."""
    wanted = f"Bearer {token}".encode()

    def authorize(authorization: Annotated[str, Header()] = "") -> None:
        if not hmac.compare_digest(authorization.encode(), wanted):
            raise HTTPException(401, "the admin token is missing or wrong", {"www-authenticate": "Bearer"})

    return Depends(authorize)
