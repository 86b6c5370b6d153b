# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Log lines that say which session they are about, and never hold a secret.

The labels of a session go along with whatever its calls do, so that no message has to name it.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

import orjson

LogFormat = Literal["text", "json"]
NO_LABELS: Mapping[str, str] = MappingProxyType({})
LABELS: ContextVar[Mapping[str, str]] = ContextVar("polar_log_labels", default=NO_LABELS)

# Session secrets, bearer tokens, and what providers' clients put into a URL or a header.
_SECRETS = re.compile(
    r"\bpolar-[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-])"
    r"|(?<=[Bb]earer )[^\s'\",;]+"
    r"|(?<=[?&]key=)[^\s&'\"]+"
    r"|(?<=api-key: )[^\s'\",;]+"
)


def scrub(text: str) -> str:
    """`text` without anything that looks like a key."""
    return _SECRETS.sub("[redacted]", text)


class TextLines(logging.Formatter):
    """For eyes: time, level, message, and the labels in the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        labels = " ".join(f"{name}={value}" for name, value in LABELS.get().items())
        return scrub(f"{super().format(record)}{labels and f' [{labels}]'}")


class JsonLines(logging.Formatter):
    """For programs: one object a line. The labels are its own keys: `session_id`, `task_id`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            **LABELS.get(),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return scrub(orjson.dumps(line, default=str).decode())


def configure(form: LogFormat = "text", level: str = "warning") -> None:
    """Write the logs of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
