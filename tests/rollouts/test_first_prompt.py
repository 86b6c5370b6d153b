# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Conversation, Message, Text, Tool
from nemo_gym_polar.rollouts.first_prompt import AROUND, FirstPrompt, difference, mismatches, readable


def prompt(text: str, digest: bytes | None = None) -> FirstPrompt:
    return FirstPrompt(digest or text.encode(), len(text), text)


def test_equal_prompts_are_no_mismatch() -> None:
    assert mismatches({"a": prompt("x"), "b": prompt("x")}) == ()


def test_a_session_without_a_prompt_is_no_mismatch() -> None:
    assert mismatches({"a": None, "b": None}) == ()
    assert mismatches({"a": prompt("x"), "b": None}) == ()


def test_the_minority_is_named_with_the_text_that_differs() -> None:
    same = "You work in /workspace on host "
    found = mismatches({"a": prompt(same + "one"), "b": prompt(same + "two"), "c": prompt(same + "one")})
    assert [mismatch.session_id for mismatch in found] == ["b"]
    assert (found[0].own, found[0].theirs) == (same + "two", same + "one")
    assert "session b begins with another prompt" in str(found[0])


def test_the_first_wins_a_tie() -> None:
    assert [mismatch.session_id for mismatch in mismatches({"a": prompt("x"), "b": prompt("y")})] == ["b"]


def test_equal_text_with_other_tokens_is_a_mismatch_too() -> None:
    (found,) = mismatches({"a": prompt("x", b"1"), "b": prompt("x", b"2")})
    assert (found.session_id, found.own) == ("b", "x")


@given(st.text(), st.text(), st.text())
def test_a_difference_is_short_and_shows_both_sides(same: str, one: str, other: str) -> None:
    shown = difference(same + one, same + other)
    assert all(len(text) <= 2 * AROUND for text in shown)
    assert (shown[0] == shown[1]) is (one == other)


def test_readable_shows_tools_and_messages() -> None:
    conversation = Conversation(
        (Message("system", (Text("S"),)), Message("user", (Text("U"),))), (Tool("bash", "Runs.", {"type": "object"}),)
    )
    assert readable(conversation).splitlines()[1:] == ["[system] S", "[user] U"]
    assert '"bash"' in readable(conversation)
