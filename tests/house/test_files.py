# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Headers, sizes, and what must never stand in a tracked file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HEADER = (
    "# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors",
    "# SPDX-License-Identifier: Apache-2.0",
)
MAX_LINES = 400
REGISTRY = re.compile(r"\b(pypi|pythonhosted|npmjs|yarnpkg|debian|ubuntu)\.(org|com|io|net)\b|\bdownload\.pytorch\b")
# A directory of one machine. The sandbox's own home is no such place: it is the same everywhere.
MACHINE = re.compile(r"(?<![\w.$}/])/((root|work)/[A-Za-z.]|(home|Users)/(?!agent\b)[A-Za-z.][\w.-]*/)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
VERBATIM = {"LICENSE"}


@pytest.fixture(scope="session")
def texts(tracked: list[Path], repo: Path) -> dict[str, str]:
    """Relative path → text of each tracked text file."""
    found = {}
    for path in tracked:
        data = path.read_bytes()
        if b"\0" not in data:
            found[str(path.relative_to(repo))] = data.decode("utf-8")
    return found


def code(texts: dict[str, str], *suffixes: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name.endswith(suffixes)}


def hits(texts: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts.items()
        if name not in VERBATIM
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_headers(texts: dict[str, str]) -> None:
    missing = []
    for name, text in code(texts, ".py", ".sh", ".ci/run").items():
        lines = text.splitlines()
        first = 1 if lines and lines[0].startswith("#!") else 0
        if tuple(lines[first : first + 2]) != HEADER:
            missing.append(name)
    assert not missing


def test_no_file_is_too_long(texts: dict[str, str]) -> None:
    sizes = {name: text.count("\n") for name, text in code(texts, ".py").items()}
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}


def test_no_registry_and_no_machine_is_named(texts: dict[str, str]) -> None:
    assert hits(texts, REGISTRY) == []
    assert hits(texts, MACHINE) == []


def test_nothing_is_left_unfinished(texts: dict[str, str]) -> None:
    own = {name: text for name, text in code(texts, ".py", ".sh").items() if name != "tests/house/test_files.py"}
    assert hits(own, UNFINISHED) == []


def test_pins_carry_hashes_and_no_address(texts: dict[str, str]) -> None:
    pins = {name: text for name, text in texts.items() if re.fullmatch(r"requirements/[\w-]+\.txt", name)}
    assert set(pins) == {f"requirements/{name}.txt" for name in ("core", "dev", "torch", "uv", "vllm-cpu")}
    for text in pins.values():
        assert "://" not in text
        assert "--find-links" not in text
        for entry in re.split(r"\n(?=\S)", text.strip()):
            assert "==" in entry and "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("bad", ["cd /" + "root/x", "see https://pypi" + ".org/x", "'/" + "home/me/x'"])
def test_the_patterns_see_a_breach(bad: str) -> None:
    assert REGISTRY.search(bad) or MACHINE.search(bad)


@pytest.mark.parametrize("good", ["/home/agent", "$HOME/work/x", "/workspace/a", "runs/work/x", "net" + "work/a"])
def test_the_patterns_let_pass(good: str) -> None:
    assert not MACHINE.search(good)
