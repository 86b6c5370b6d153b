# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A model directory and a running scripted engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.engines.rendering import Rendering
from tests.support.fake_engine import FakeEngine
from tests.support.tiny_model import make_model


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def rendering(model_directory: Path) -> Rendering:
    return Rendering.load(model_directory, "qwen3.5", {"enable_thinking": False})


@pytest.fixture(scope="session")
def thinking(model_directory: Path) -> Rendering:
    return Rendering.load(model_directory, "qwen3.5", {"enable_thinking": True})


@pytest.fixture
async def engine(model_directory: Path) -> AsyncIterator[FakeEngine]:
    async with FakeEngine(model_directory) as engine:
        yield engine
