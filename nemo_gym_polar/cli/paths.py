# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where the configuration groups and recipes lie: inside the package of a wheel, at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def conf() -> Path:
    """The directory of the Hydra groups."""
    return _shipped("conf")


def recipe(name: str) -> Path:
    """The recipe file at path `name`, or the shipped one of that name; FileNotFoundError names those there are."""
    shipped = _shipped("recipes")
    for path in (Path(name), shipped / name, shipped / f"{name}.yaml"):
        if path.is_file():
            return path.resolve()
    known = ", ".join(sorted(path.stem for path in shipped.glob("*.yaml")))
    raise FileNotFoundError(f"no recipe {name!r}: give a path to a YAML file, or the name of a shipped one ({known})")


def _shipped(name: str) -> Path:
    return next(path for path in (PACKAGE / name, PACKAGE.parent / name) if path.is_dir())
