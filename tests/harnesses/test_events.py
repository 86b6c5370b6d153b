# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.harnesses.events import events, last

OUTPUT = b"""ut": true}
starting up
{"type": "start"}
{"type": "result", "n": 1}
[1, 2]
{"type": "result", "n": 2}
{"type": "log"}
{"type": "resu"""


def test_events_stand_among_other_lines() -> None:
    assert [event.get("type") for event in events(OUTPUT)] == ["start", "result", "result", "log"]


def test_the_last_of_its_kind() -> None:
    assert last(OUTPUT, "result")["n"] == 2
    assert last(OUTPUT, "start", "result")["n"] == 2
    assert last(OUTPUT, "end") == {}


@given(st.binary(max_size=200))
def test_any_output_can_be_read(output: bytes) -> None:
    assert all(isinstance(event, dict) for event in events(b"{" + output))
