# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses API, as Codex speaks it."""

from __future__ import annotations

import orjson


def deleted(response_id: str) -> bytes:
    return orjson.dumps({"id": response_id, "object": "response", "deleted": True})
