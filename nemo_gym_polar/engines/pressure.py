# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How full an engine is, by its own Prometheus page.

vLLM and SGLang tell which share of the key-value cache is in use and how many requests wait for a place. One that lets
requests wait is full, whatever its cache says.
"""

from __future__ import annotations

from collections.abc import Sequence

PAGE = "/metrics"
CACHE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")


def read_pressure(page: str) -> float | None:
    """From 0 to 1; None for a page that says nothing of it, or is none. The fullest of several engines counts."""
    # Not at the top: commands that ask no engine should not wait for it.
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = text_string_to_metric_families(page)
        found = {family.name: [sample.value for sample in family.samples] for family in families}
    except (ValueError, IndexError):  # the parser raises either for what is no such page
        return None
    used = [value for name in CACHE for value in found.get(name, ())]
    if any(value > 0 for name in WAITING for value in found.get(name, ())):
        return 1.0
    return min(1.0, max(0.0, *used)) if used else None


def together(pages: Sequence[str]) -> float | None:
    """Of several replicas: the mean, since their sessions are spread; None where none tells."""
    told = [value for value in map(read_pressure, pages) if value is not None]
    return sum(told) / len(told) if told else None
