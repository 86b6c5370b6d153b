# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from nemo_gym_polar.policy.api.service import PolicyService
from tests.support.served_policy import serving

LIMIT = 2000


@pytest.fixture(scope="session")
def served(policy_dir: Path) -> Iterator[tuple[str, PolicyService]]:
    with serving(policy_dir, "--max-model-len", str(LIMIT), "--served-model-name", "tiny") as server:
        yield server


@pytest.fixture(scope="session")
def service(served: tuple[str, PolicyService]) -> PolicyService:
    return served[1]


@pytest.fixture(scope="session")
def client(served: tuple[str, PolicyService]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served[0], timeout=30) as client:
        yield client
