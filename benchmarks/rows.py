# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a benchmark prints: JSON for report.py, or a line a row for who looks at it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def shown(found: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, as_json: bool) -> str:
    """All that was found, or only its `rows`."""
    return json.dumps(found, indent=1) if as_json else "\n".join(map(_line, rows))


def _line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{key} {_value(value)}" for key, value in row.items())


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
