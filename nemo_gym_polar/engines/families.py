# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which renderer a model is rendered by, and what it does with past thinking.

`renderers` has one for each family that it knows, written by hand, which can append to tokens. `default` is the model's
own template, which can only be rendered whole. `auto` takes the family of the model's name, if that is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from nemo_gym_polar.engines.tokenizer import FileTokenizer

History = Literal["keep", "strip"]

DEFAULT = "default"
AUTO = "auto"
_RETENTION = "thinking_retention"  # what `renderers` calls the history policy


def make_renderer(
    tokenizer: FileTokenizer, name: str, options: Mapping[str, Any], history: History, model: str
) -> tuple[str, Any]:
    """The renderer called `name`, and the name that it has. `model` is what `auto` looks up."""
    from renderers import create_renderer  # type: ignore[import-untyped]  # it has no py.typed

    name = _family(model) if name == AUTO else name
    config = _config(name, options, history)
    if name == DEFAULT and tokenizer.chat_template is None:
        raise ValueError(
            f"engine.renderer={name}: {tokenizer.name_or_path} has neither chat_template.jinja nor a chat_template in "
            "tokenizer_config.json; add one, or name the model's family"
        )
    try:
        return name, create_renderer(tokenizer, config)
    except (AssertionError, ValueError, LookupError, TypeError) as error:
        reason = f"engine.renderer={name}: {error}; the tokenizer in {tokenizer.name_or_path} is not of that family."
        raise ValueError(f"{reason} Name the right one, or {DEFAULT} for the model's own template") from error
    except (ImportError, RuntimeError) as error:  # gpt-oss reads its vocabulary from a file of its own
        reason = f"engine.renderer={name}: {error}. Install what is missing (for gpt-oss: set TIKTOKEN_ENCODINGS_BASE "
        raise ValueError(f"{reason}to the directory of its vocabulary), or choose {DEFAULT}") from error


def _family(model: str) -> str:
    """Only exact names: a fine-tune's template may be another."""
    from renderers.base import MODEL_RENDERER_MAP  # type: ignore[import-untyped]  # see above

    return str(MODEL_RENDERER_MAP.get(model, DEFAULT))


def _config(name: str, options: Mapping[str, Any], history: History) -> Any:
    from renderers import config_from_name

    if _RETENTION in options:
        raise ValueError(f"engine.renderer_options.{_RETENTION}: set engine.history instead; all is keep, else strip")
    if name == DEFAULT and history == "keep":
        raise ValueError(
            f"engine.history=keep: the renderer {DEFAULT} can't append to tokens, it renders the template whole. Name "
            "the model's family as engine.renderer, or leave history=strip"
        )
    kept = {_RETENTION: "all"} if history == "keep" else {}
    try:
        config = type(config_from_name(name))
    except ValueError as error:
        raise ValueError(f"engine.renderer: {error}; '{DEFAULT}' takes the model's own template") from None
    try:
        return config(**options, **kept)
    except ValidationError as error:
        found = [(*map(str, item["loc"]), item["msg"].removeprefix("Value error, ")) for item in error.errors()]
        wrong = "; ".join(map(": ".join, found))
        raise ValueError(f"engine.renderer_options: {wrong} (renderer {name}, history={history})") from error
