# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an import drags in. Modules are counted, not seconds: a count is the same on every machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

HEAVY = {"matplotlib", "nemo_gym", "openai", "pandas", "pyarrow", "ray", "tensorboard", "torch", "transformers"}


def loaded(statement: str) -> Counter[str]:
    """Top-level package → number of its modules in a fresh interpreter after `statement`."""
    code = f"{statement}; import json, sys; print(json.dumps(list(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Counter(name.split(".")[0] for name in json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        pytest.param("import nemo_gym_polar.gateway.standalone", 900, id="gateway"),
        pytest.param("import nemo_gym_polar.rollouts.service", 1000, id="rollouts"),
        pytest.param("import nemo_gym_polar.cli.polar", 900, id="polar"),
    ],
)
def test_nothing_heavy_comes_along(statement: str, most: int) -> None:
    modules = loaded(statement)
    assert not HEAVY & set(modules)
    assert modules.total() <= most, modules.most_common(10)


def test_the_forest_needs_no_web() -> None:
    modules = loaded("import nemo_gym_polar.forest.recorder, nemo_gym_polar.forest.builders")
    assert not {"aiohttp", "fastapi", "pydantic", "starlette", "uvicorn"} & set(modules)
