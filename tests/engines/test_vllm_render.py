# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which tokens of a rendered conversation may be put after those that were sampled; the live tests have the server."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nemo_gym_polar.chat import Conversation, Message, Sampling, Text
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.factory import ChatMode, EngineSettings, make_engine
from nemo_gym_polar.engines.vllm_render import RenderingVLLM, continuation
from tests.support.fake_engine import FakeEngine

END, LINE = 90, 91
WORDS = st.lists(st.integers(0, 50), min_size=1, max_size=12)
HEAD = [1, END, LINE, 2]  # a question and the opening of the answer


def ids(*parts: list[int]) -> np.ndarray:
    return np.array([token for part in parts for token in part], np.int32)


@given(said=WORDS, spelled=WORDS, new=WORDS, closing=st.integers(0, 4))
def test_what_was_sampled_stays_and_what_is_new_is_added(
    said: list[int], spelled: list[int], new: list[int], closing: int
) -> None:
    """The template may spell the answer otherwise than it was sampled."""
    rendered = ids(HEAD, spelled, [END], [LINE] * closing)
    whole = ids(HEAD, spelled, [END], [LINE] * closing, new)
    added = continuation(whole, rendered, ids(HEAD, said, [END]), {END})
    assert added is not None and added.tolist() == [LINE] * closing + new
    cut_off = continuation(whole, rendered, ids(HEAD, said), {END})
    assert cut_off is not None and cut_off.tolist() == [END] + [LINE] * closing + new


@pytest.mark.parametrize(
    ("whole", "rendered", "prefix", "ends"),
    [
        pytest.param([3, *HEAD, 7, END, 8], [*HEAD, 7, END], [*HEAD, 7, END], {END}, id="the past is rewritten"),
        pytest.param([*HEAD, END, 8], [*HEAD, 7, END], [*HEAD, 7, END], {END}, id="thinking is dropped"),
        pytest.param([*HEAD, 7], [*HEAD, 7, END], [*HEAD, 7, END], {END}, id="the end is moved"),
        pytest.param([*HEAD, 7, END, 8], [*HEAD, 7, END], [*HEAD, 7, 92], {END, 92}, id="another end was sampled"),
        pytest.param([*HEAD, 7, END, 8], [*HEAD, 7, END], [*HEAD, 7, END], set(), id="no end is known"),
        pytest.param([*HEAD, *range(9), 8], [*HEAD, *range(9)], [*HEAD, 7, END], {END}, id="answers have no end"),
    ],
)
def test_in_doubt_nothing_is_appended(whole: list[int], rendered: list[int], prefix: list[int], ends: set[int]) -> None:
    assert continuation(ids(whole), ids(rendered), ids(prefix), ends) is None


async def test_a_server_that_cannot_render_is_named(engine: FakeEngine) -> None:
    mode = make_engine(EngineSettings(urls=(engine.url,), model="tiny", mode="render"))
    assert isinstance(mode, ChatMode)
    assert isinstance(mode.engine, RenderingVLLM)
    asked = Conversation((Message("user", (Text("hi"),)),))
    with pytest.raises(EngineError, match=r"/v1/chat/completions/render with 404"):
        await mode.engine.chat(asked, Sampling(max_tokens=5), session="s")
    await mode.engine.close()


def test_only_vllm_renders_for_us() -> None:
    with pytest.raises(ValidationError, match=r"engine\.mode=render: only vLLM can; .* not sglang"):
        EngineSettings(urls=("http://x",), model="m", mode="render", kind="sglang")
