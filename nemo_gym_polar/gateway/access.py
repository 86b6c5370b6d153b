# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who may use the routes that are not a harness's: whoever has the admin token."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException


def bearer(token: str | None) -> Any:
    """A dependency of routes: 401 without `token`, as the bearer or in the reference system's own header. It takes
    equally long for every wrong one. None: everybody may."""
    wanted = token.encode() if token else b""

    def authorize(
        authorization: Annotated[str, Header()] = "", x_polar_control_token: Annotated[str, Header()] = ""
    ) -> None:
        scheme, _, given = authorization.partition(" ")
        shown = x_polar_control_token or (given if scheme.lower() == "bearer" else "")
        if token is not None and (not token or not hmac.compare_digest(shown.encode(), wanted)):
            raise HTTPException(401, "the admin token is missing or wrong", {"www-authenticate": "Bearer"})

    return Depends(authorize)
