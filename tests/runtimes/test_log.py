# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A secret that a command prints does not get into its log, however it is cut into pieces."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.runtimes.log import MASK, BoundedLog, Masked

SECRET = b"abab-key"
Text = st.lists(st.sampled_from([SECRET, b"abab-ke", b"a", b"b", b"x", b"\n", SECRET * 2]), max_size=12).map(b"".join)


@given(Text, st.lists(st.integers(1, 9), max_size=40))
def test_whatever_the_pieces_the_secret_is_hidden_and_the_rest_is_whole(text: bytes, sizes: list[int]) -> None:
    masked, out, at = Masked([SECRET]), b"", 0
    for size in sizes:
        out += masked(text[at : at + size])
        at += size
    out += masked(text[at:]) + masked.rest()
    assert out == text.replace(SECRET, MASK)


def test_nothing_to_hide_holds_nothing_back() -> None:
    assert Masked([])(b"abab-ke") == b"abab-ke"
    assert Masked([b""])(b"x") == b"x"


def test_each_stream_is_watched_by_itself(tmp_path: Path) -> None:
    with BoundedLog(tmp_path / "log", ["key-1"]) as log:
        log("stdout", b"the ke")
        log("stderr", b"E")
        log("stdout", b"y-1 and ke")
        log.note_lost(30)
    text = (tmp_path / "log").read_text()
    assert text.startswith("the E[hidden] and ke\n[13 bytes more")
