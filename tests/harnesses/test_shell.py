# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.harnesses.shell import ShellHarness
from nemo_gym_polar.runtimes.base import Exit

CONTEXT = HarnessContext("do", "http://h/s/1", "key", "model", "/home/agent", "/workspace", 1000, 100)


class OwnHarness(ShellHarness):
    name = "own"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__({"command": "echo own", **settings})


def test_the_gateway_is_in_the_environment() -> None:
    launch = ShellHarness({"command": "x", "env": {"A": "b"}, "files": {"run.sh": "y"}}).launch(CONTEXT)
    assert launch.argv == ("bash", "-c", "x")
    assert launch.env["OPENAI_BASE_URL"] == "http://h/s/1/v1"
    assert launch.env["ANTHROPIC_BASE_URL"] == "http://h/s/1"
    assert (launch.env["OPENAI_API_KEY"], launch.env["POLAR_INSTRUCTION"], launch.env["A"]) == ("key", "do", "b")
    assert launch.files == {"run.sh": b"y"}


@pytest.mark.parametrize(("code", "turns", "status"), [(0, 1, "completed"), (1, 1, "failed"), (0, 0, "failed")])
def test_its_exit_code_counts_and_so_does_silence(code: int, turns: int, status: str) -> None:
    assert ShellHarness({"command": "x"}).status(Exit(code, False, b"", b"", 1.0), turns)[0] == status


def test_by_name_and_by_import_path() -> None:
    assert make_harness("shell", {"command": "x"}).name == "shell"
    assert make_harness(f"{__name__}:OwnHarness").name == "own"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pie", "agent.harness='pie' is unknown: choose one of .*pi, .*shell"),
        ("no.such.module:X", "can't be imported: No module"),
        ("nemo_gym_polar.harnesses.pi:Nothing", "can't be imported"),
    ],
)
def test_an_unknown_harness(name: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        make_harness(name)


def test_shell_needs_a_command() -> None:
    with pytest.raises(HarnessError, match=r"agent.settings.command.*required"):
        make_harness("shell")
