# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.engines.pressure import read_pressure, together
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.vllm import VLLM
from tests.support.fake_engine import FakeEngine

VLLM_PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.4
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
"""
SGLANG_PAGE = 'sglang:token_usage{model_name="m"} 0.3\nsglang:num_queue_reqs{model_name="m"} 0.0\n'


@pytest.mark.parametrize(
    ("page", "pressure"),
    [
        (VLLM_PAGE, 0.6),
        (VLLM_PAGE.replace('model_name="m"} 0.0', 'model_name="m"} 2.0'), 1.0),
        (SGLANG_PAGE, 0.3),
        (SGLANG_PAGE.replace(" 0.0", " 1.0"), 1.0),
        ("vllm:gpu_cache_usage_perc 1.2\n", 1.0),
        ("process_cpu_seconds_total 3\n", None),
        ("", None),
        ("<html>Not here</html>", None),
        ('vllm:kv_cache_usage_perc{model_name="m" 0.4', None),
        (" {, =P}", None),
        ('{"', None),
    ],
)
def test_pages(page: str, pressure: float | None) -> None:
    assert read_pressure(page) == pressure


@given(st.text())
def test_whatever_a_page_says_it_is_a_share_or_nothing(page: str) -> None:
    found = read_pressure(page)
    assert found is None or 0 <= found <= 1


def test_replicas_are_counted_together_as_far_as_they_tell() -> None:
    assert together([SGLANG_PAGE, SGLANG_PAGE.replace("0.3", "0.5"), ""]) == pytest.approx(0.4)
    assert together([""]) is None


async def test_a_replica_that_is_gone_is_left_out(model_directory: Path) -> None:
    async with FakeEngine(model_directory, page=VLLM_PAGE) as engine:
        client = VLLM(Replicas(["http://127.0.0.1:9", engine.url]), model="m")
        assert await client.pressure() == 0.6
        engine.page = ""
        assert await client.pressure() is None
        await client.close()
