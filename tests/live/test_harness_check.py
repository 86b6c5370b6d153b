# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar harness check` on every real agent program that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemo_gym_polar.harnesses.registry import HARNESSES, make_harness
from tests.support.commands import run_command


@pytest.mark.parametrize("name", sorted(HARNESSES.keys() - {"shell"}))
def test_each_works(tmp_path: Path, name: str) -> None:
    make_harness(name).install()
    ended = run_command(tmp_path, "polar", "harness", "check", name, "--json")
    (report,) = json.loads(ended.stdout)
    assert [finding for finding in report["findings"] if not finding["ok"]] == []
    assert report["ok"]
    assert ended.returncode == 0
