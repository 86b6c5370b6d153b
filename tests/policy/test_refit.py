# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""New weights for an SGLang; what vLLM's calls do is tested with the embedded engine, which has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.sglang import SGLang
from nemo_gym_polar.policy.refit import InFlight, RefitError, load_weights
from nemo_gym_polar.tokens import VersionSpan
from tests.support.fake_sglang import FakeSGLang


@pytest.fixture
async def server(model_directory: Path) -> AsyncIterator[FakeSGLang]:
    async with FakeSGLang(model_directory) as server:
        yield server


@pytest.mark.parametrize(
    ("in_flight", "calls", "aborts"),
    [
        ("wait", ["/update_weights_from_disk"], False),
        ("abort", ["/update_weights_from_disk"], True),
        ("keep", ["/pause_generation", "/update_weights_from_disk", "/continue_generation"], False),
    ],
)
async def test_what_is_sampled_next_has_the_new_version(
    server: FakeSGLang, tmp_path: Path, in_flight: InFlight, calls: list[str], aborts: bool
) -> None:
    await load_weights(server.url, tmp_path, "8", in_flight=in_flight, sglang=True)
    assert [path for path, _ in server.controls] == calls
    update = dict(server.controls)["/update_weights_from_disk"]
    assert update == {
        "model_path": str(tmp_path),
        "weight_version": "8",
        "flush_cache": True,
        "abort_all_requests": aborts,
    }
    client = SGLang(Replicas([server.url]), model="tiny")
    sampled = await client.sample(np.arange(5, dtype=np.int32), Sampling(temperature=1.0), session="s")
    await client.close()
    assert sampled.versions == (VersionSpan("8", 0, len(sampled.token_ids)),)


async def test_refused_weights_are_an_error_and_sampling_goes_on(server: FakeSGLang, tmp_path: Path) -> None:
    with pytest.raises(RefitError, match="no such model"):
        await load_weights(server.url, tmp_path / "nowhere", "8", in_flight="keep", sglang=True)
    assert server.controls[-1] == ("/continue_generation", {})


async def test_a_dead_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefitError, match=r"127\.0\.0\.1:9"):
        await load_weights("http://127.0.0.1:9", tmp_path, "8", sglang=True)
