# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from nemo_gym_polar.runtimes.base import Mount, SandboxError
from nemo_gym_polar.runtimes.local import LocalRuntime, NoIsolationWarning
from nemo_gym_polar.runtimes.registry import GatewayAddress, make_runtime

NOWHERE = GatewayAddress("http://127.0.0.1:9")


def test_an_unknown_backend_names_the_known_ones() -> None:
    with pytest.raises(SandboxError, match=r"runtime.backend='dokcer' is unknown.*bubblewrap, local"):
        make_runtime("dokcer", NOWHERE)


@pytest.mark.parametrize(
    ("settings", "field"), [({"workspace_gb": 1}, "workspace_gb"), ({"processes": 0}, "processes")]
)
def test_a_bad_setting_is_named(settings: dict[str, int], field: str) -> None:
    with pytest.raises(SandboxError, match=f"runtime.settings.{field}="):
        make_runtime("bubblewrap", NOWHERE, settings=settings)


async def test_local_says_what_is_missing_and_finds_mounted_programs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "tool").write_text("#!/bin/sh\necho $WHERE\n")
    (tmp_path / "tool").chmod(0o755)
    with pytest.warns(NoIsolationWarning, match="isolates nothing"):
        runtime = LocalRuntime(gateway_url=NOWHERE.url, mounts=[Mount(tmp_path, "/opt/polar/tool")])
    await runtime.start()
    ended = await runtime.run(["/opt/polar/tool/tool"], env={"WHERE": "/opt/polar/tool/x"}, timeout=10)
    await runtime.stop()
    assert ended.stdout.decode().strip() == f"{tmp_path}/x"
    assert not runtime.directory.exists()
