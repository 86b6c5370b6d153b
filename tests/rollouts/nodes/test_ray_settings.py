# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.nodes import ray_machines
from nemo_gym_polar.rollouts.nodes.base import NodeError
from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings, RaySettings


async def test_no_cluster_is_one_line() -> None:
    settings = RaySettings(address="127.0.0.1:9")
    with pytest.raises(NodeError) as caught:
        async with ray_machines.connected(settings):
            pass
    assert "127.0.0.1:9" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (RaySettings, {"address": "ray://h:1"}, "HOST:PORT"),
        (RaySettings, {"address": "somewhere"}, "HOST:PORT"),
        (RaySettings, {"address": "head:port"}, "HOST:PORT"),
        (RaySettings, {"cpus": -1}, "cpus"),
        (RaySettings, {"namespace": "a b"}, "namespace"),
        (NodeSettings, {"gateway": {"journals": "j"}}, "journals"),
        (NodeSettings, {"rollouts": {"run_workers": 0}}, "run_workers"),
        (NodeSettings, {"rollouts": {"unknown": 0}}, "unknown"),
    ],
)
def test_wrong_settings_are_named(
    kind: type[RaySettings] | type[NodeSettings], fields: dict[str, object], said: str, tmp_path: Path
) -> None:
    given = {"engine": {"urls": ["http://e"], "model": "m", "mode": "chat"}, "directory": tmp_path}
    with pytest.raises(ValueError, match=said):
        kind.model_validate({**(given if kind is NodeSettings else {}), **fields})
