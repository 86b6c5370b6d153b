# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.harnesses.toml import document

texts = st.text(st.characters(exclude_categories=["Cs"]))
leaves = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)


@given(st.dictionaries(texts, values))
def test_what_is_written_is_read(values: dict[str, Any]) -> None:
    assert tomllib.loads(document(values)) == values


def test_what_toml_has_no_form_for_is_refused() -> None:
    with pytest.raises(TypeError, match="no form for None"):
        document({"a": None})
