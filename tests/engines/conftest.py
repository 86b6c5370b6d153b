# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The test model as a rendering, with and without thinking."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemo_gym_polar.engines.rendering import Rendering


@pytest.fixture(scope="session")
def rendering(model_directory: Path) -> Rendering:
    return Rendering.load(model_directory, "qwen3.5", {"enable_thinking": False})


@pytest.fixture(scope="session")
def thinking(model_directory: Path) -> Rendering:
    return Rendering.load(model_directory, "qwen3.5", {"enable_thinking": True})
