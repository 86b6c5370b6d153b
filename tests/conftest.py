# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What all tests share: quiet threads, no hub, one way for hypothesis to search, and a scripted engine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.fake_engine import FakeEngine
from tests.support.tiny_model import make_model

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

# A shared machine is no place to judge an example by its time. In CI a run must find the same twice.
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer and a chat template in the Hugging Face layout, without weights."""
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
async def engine(model_directory: Path) -> AsyncIterator[FakeEngine]:
    async with FakeEngine(model_directory) as engine:
        yield engine
