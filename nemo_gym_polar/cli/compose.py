# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe, the Hydra groups of conf/ and the overrides of the command line, composed into plain values.

The grammar is Hydra's: `key=value` sets an existing key, `group=option` chooses a file of conf/, `+key=value` adds,
`~key` removes. A key that is not there is refused with the nearest one that is.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from nemo_gym_polar.cli import paths
from nemo_gym_polar.cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Composed:
    """The values of a run, and the file that each top-level key comes from."""

    values: dict[str, Any]
    sources: Mapping[str, str]
    recipe: str

    def yaml(self) -> str:
        return OmegaConf.to_yaml(OmegaConf.create(self.values))

    def source(self, key: str) -> str:
        """The file in which `key`, a dotted path, would stand."""
        return self.sources.get(key.split(".")[0], self.recipe)

    def nearest(self, key: str) -> str | None:
        """The other key most like `key`, if any is at all alike."""
        known = [path for path in flatten(self.values) if path != key]
        namesakes = [path for path in known if path.rpartition(".")[2] == key.rpartition(".")[2]]
        alike = difflib.get_close_matches(key, namesakes or known, n=1, cutoff=0.6)
        return next(iter([*alike, *namesakes]), None)


def compose(recipe: Path, overrides: Sequence[str] = ()) -> Composed:
    """Raises UsageError naming the override that is wrong."""
    parsed = _parse(overrides)
    choices = [override for override in parsed if _is_choice(override)]
    for choice in choices:
        _check_option(choice)
    base = _compose(recipe, [_line(override) for override in choices])
    for override in parsed:
        if override.type is OverrideType.CHANGE and override not in choices:
            _check_key(base, override)
    composed = _compose(recipe, overrides)
    for key in missing(composed.values):
        raise UsageError(f"{key} has no value ({composed.source(key)}); give one as {key}=…")
    return composed


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted paths of every key, inner ones included."""
    keys = []
    for key, value in values.items():
        path = f"{prefix}{key}"
        keys.append(path)
        if isinstance(value, Mapping):
            keys.extend(flatten(value, f"{path}."))
    return keys


def missing(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted paths of keys that must be set and are not: `???`."""
    keys = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            keys += missing(value, f"{prefix}{key}.")
        elif value == "???":
            keys.append(f"{prefix}{key}")
    return keys


def _parse(overrides: Sequence[str]) -> list[Override]:
    parser = OverridesParser.create()
    parsed = []
    for text in overrides:
        try:
            override = parser.parse_override(text)
        except HydraException as error:
            raise UsageError(f"{text!r} is not an override: write key=value ({_first_line(error)})") from error
        if override.is_sweep_override():
            raise UsageError(f"{text!r} asks for a sweep, and this is one run: write a list as key=[a,b]")
        parsed.append(override)
    return parsed


def _is_choice(override: Override) -> bool:
    return (paths.conf() / override.key_or_group).is_dir() and isinstance(override.value(), str)


def _check_option(override: Override) -> None:
    group = paths.conf() / override.key_or_group
    options = sorted(path.stem for path in group.glob("*.yaml"))
    if override.value() not in options:
        known = ", ".join(options)
        raise UsageError(f"{_line(override)}: there is no such {override.key_or_group}; choose one of: {known}")


def _check_key(base: Composed, override: Override) -> None:
    if override.key_or_group in flatten(base.values) or override.key_or_group.startswith("hydra."):
        return
    raise UsageError(unknown_key(base, override.key_or_group))


def unknown_key(base: Composed, key: str) -> str:
    """What to say of a key that no setting has."""
    nearest = base.nearest(key)
    hint = f"did you mean {nearest} ({base.source(nearest)})?" if nearest else "--cfg job shows all there are"
    return f"there is no setting {key!r}; {hint}"


def _compose(recipe: Path, overrides: Sequence[str]) -> Composed:
    search = f"hydra.searchpath=['file://{paths.conf()}']"
    try:
        with initialize_config_dir(config_dir=str(recipe.parent), version_base="1.3"):
            config = hydra_compose(recipe.stem, overrides=[search, *overrides], return_hydra_config=True)
        return _plain(config, recipe)
    except yaml.YAMLError as error:
        raise UsageError(f"{recipe.name} is not YAML: {' '.join(str(error).split())}") from error
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(f"{recipe.name}: {_first_line(error)}") from error


def _plain(config: DictConfig, recipe: Path) -> Composed:
    with open_dict(config):
        choices = config.pop("hydra").runtime.choices
    sources = {group: f"conf/{group}/{option}.yaml" for group, option in choices.items() if "/" not in str(group)}
    values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    return Composed({str(key): value for key, value in values.items()}, sources, recipe.name)


def _line(override: Override) -> str:
    return str(override.input_line)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
