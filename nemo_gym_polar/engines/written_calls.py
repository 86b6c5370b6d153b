# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a tool call as the model wrote them, where the parser of `renderers` is not exact.

In the XML form of the Qwen3-Coder and Qwen3.5 families it trims values, which takes the indentation from code, and it
passes over what is in no parameter, so that a call written wrongly looks like one without arguments. Here a value loses
only the line breaks of the form itself, as with vLLM's parser; a body that can't be read whole is passed on as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

_BODY = re.compile(r"<function=[^>]+>(.*?)(?:</function>\s*)?\Z", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def arguments_text(raw: str, parsed: Mapping[str, Any] | str | None) -> str:
    """JSON of the arguments, or the text that stands for them if they can't be read. `raw` is the call as written."""
    if isinstance(parsed, str):
        return parsed
    body = _BODY.search(raw)
    if body is None:  # another form
        return _json(parsed or {})
    if _PARAMETER.sub("", body[1]).strip():
        return body[1].strip("\n")
    return _json({**(parsed or {}), **_exact(body[1], parsed or {})})


def _exact(body: str, parsed: Mapping[str, Any]) -> dict[str, str]:
    """The texts among the values, with the white space that they were written with."""
    written = {found[1]: found[2] for found in _PARAMETER.finditer(body)}
    return {name: text for name, text in written.items() if parsed.get(name) == text.strip()}


def _json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value).decode()
