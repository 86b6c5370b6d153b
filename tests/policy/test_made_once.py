# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nemo_gym_polar.policy.made_once import cache_root, made_once


class Maker:
    """Makes a directory with two files, and counts how often it had to."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, directory: Path) -> None:
        self.calls += 1
        directory.mkdir()
        (directory / "first").touch()
        self.may_end.wait(10)
        (directory / "second").touch()


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_it_is_made_once(tmp_path: Path) -> None:
    make = Maker()
    for _ in range(3):
        assert names(made_once(tmp_path / "deep" / "a", make)) == {"first", "second"}
    assert make.calls == 1


def test_several_at_once_make_it_once_and_none_sees_a_part(tmp_path: Path) -> None:
    make = Maker()
    make.may_end.clear()
    with ThreadPoolExecutor(4) as callers:
        made = [callers.submit(made_once, tmp_path / "a", make) for _ in range(4)]
        assert not (tmp_path / "a").exists()
        make.may_end.set()
        assert [names(one.result()) for one in made] == [{"first", "second"}] * 4
    assert make.calls == 1


def test_a_failure_leaves_nothing_and_the_next_caller_tries_again(tmp_path: Path) -> None:
    def fail(directory: Path) -> None:
        directory.mkdir()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        made_once(tmp_path / "a", fail)
    assert names(tmp_path) == {"a.lock"}
    assert made_once(tmp_path / "a", Maker()).is_dir()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("POLAR_CACHE_DIR", raising=False)
    assert cache_root() == tmp_path / "xdg" / "nemo-gym-polar"
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
