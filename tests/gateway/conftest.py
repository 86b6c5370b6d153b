# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway in front of the scripted engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench


@pytest.fixture
async def stand(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(engine, tmp_path / "journals", header_grace=0.3, keep_alive=0.1, context_tokens=4096) as stand:
        yield stand
