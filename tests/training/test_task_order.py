# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.training.task_order import TaskOrder


@given(st.integers(1, 20), st.integers(0, 5), st.lists(st.integers(1, 7), max_size=12))
def test_every_task_comes_once_before_any_comes_again(tasks: int, seed: int, sizes: list[int]) -> None:
    order = TaskOrder(tasks, seed)
    drawn: list[int] = []
    for size in sizes:
        drawn += order.peek(size)
        order.drawn += size
    for start in range(0, len(drawn), tasks):
        assert max(Counter(drawn[start : start + tasks]).values()) == 1


@given(st.integers(1, 20), st.integers(0, 5), st.integers(0, 60))
def test_the_number_drawn_is_all_there_is_to_keep(tasks: int, seed: int, drawn: int) -> None:
    through = TaskOrder(tasks, seed).peek(drawn + 10)
    assert TaskOrder(tasks, seed, drawn).peek(10) == through[drawn:]


def test_seeds_give_other_orders() -> None:
    assert TaskOrder(50, 0).peek(50) != TaskOrder(50, 1).peek(50)
