# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments reach the harness as they were written."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.engines.written_calls import arguments_text

plain = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=40)


def written(**arguments: str) -> str:
    given = "".join(f"<parameter={name}>\n{text}\n</parameter>\n" for name, text in arguments.items())
    return f"\n<function=edit>\n{given}</function>\n"


@given(plain, plain)
def test_white_space_stays(old: str, new: str) -> None:
    parsed = {"old": old.strip(), "new": new.strip()}
    assert orjson.loads(arguments_text(written(old=old, new=new), parsed)) == {"old": old, "new": new}


def test_values_of_other_types_are_the_parsers() -> None:
    assert orjson.loads(arguments_text(written(line=" 7 "), {"line": 7})) == {"line": 7}


@pytest.mark.parametrize(
    "body",
    [
        "ls -la",
        "<parameter=command>\nls",
        "<parameter=command>\nls\n</parameter>\nrm",
        '{"command": "ls"}',
        "<parameter=a>\n1\n</parameter>\n<parameter=b>\n2",
    ],
)
def test_a_body_that_cannot_be_read_is_passed_on(body: str) -> None:
    assert arguments_text(f"\n<function=bash>\n{body}\n</function>\n", {}) == body


def test_a_call_without_arguments_has_none() -> None:
    assert arguments_text("\n<function=now>\n</function>\n", {}) == "{}"


def test_other_forms_are_left_alone() -> None:
    assert arguments_text('{"name": "f"}', '{"a": ') == '{"a": '
    assert arguments_text("f\n<arg_key>a</arg_key>", {"a": 1}) == '{"a":1}'
