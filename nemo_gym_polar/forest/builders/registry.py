# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Builders by name, or by import path: `package.module:callable`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from nemo_gym_polar.forest.builders.base import Build, Builder, Options
from nemo_gym_polar.forest.builders.per_request import per_request
from nemo_gym_polar.forest.builders.prefix_merging import prefix_merging
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.forest.store import TurnStore

_OWN: tuple[Builder, ...] = (per_request, prefix_merging)
_BUILDERS: dict[str, Builder] = {"per_request": per_request, "prefix_merging": prefix_merging}


def build(store: TurnStore, strategy: str = "prefix_merging", config: Mapping[str, Any] | None = None) -> Build:
    """The traces of a session by the named builder. Raises `BuilderError`, also for what another's builder raises."""
    builder, options = resolve(strategy), Options.parse(config or {})
    if builder in _OWN:
        return builder(store, options)
    try:
        built: object = builder(store, options)
    except BuilderError:
        raise
    except Exception as error:  # others' code: whatever it is, it is their session's error and nobody else's
        raise BuilderError(f"the builder {strategy!r} failed: {type(error).__name__}: {error}") from error
    if not isinstance(built, Build):
        raise BuilderError(f"the builder {strategy!r} gave a {type(built).__name__}; it must return a Build")
    return built


def register(name: str, builder: Builder) -> None:
    """Make `builder` known as `name`, which must be free."""
    if _BUILDERS.setdefault(name, builder) is not builder:
        raise BuilderError(f"a builder named {name!r} is registered already; choose another name")


def names() -> list[str]:
    return sorted(_BUILDERS)


def resolve(strategy: str) -> Builder:
    if strategy in _BUILDERS:
        return _BUILDERS[strategy]
    module, colon, attribute = strategy.partition(":")
    if not colon:
        raise BuilderError(f"no builder {strategy!r}; choose one of {', '.join(names())}, or give module:callable")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BuilderError(f"can't import the builder {strategy!r}: {error}") from error
    if not callable(found):
        raise BuilderError(f"{strategy!r} is not callable; a builder takes (store, options) and returns a Build")
    return cast("Builder", found)
