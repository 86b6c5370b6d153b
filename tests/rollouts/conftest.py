# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import Marked, Stand, stand


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    async with stand(engine, tmp_path) as made:
        yield made


@pytest.fixture
def marked() -> Marked:
    return Marked()
