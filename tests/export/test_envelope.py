# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.export.envelope import KEYS, LEVELS, EnvelopeError, decode_envelope, encode_envelope
from nemo_gym_polar.export.lines import LINE
from nemo_gym_polar.forest.builders import Build, build
from tests.export.worlds import BUILDERS, CONFIGS, worlds
from tests.forest.world import World, assistant, user
from tests.support.traces import equal

ABOUT = {"task_id": "t", "sample": 0, "status": "COMPLETED", "reward": 1.0}
NAMES = st.dictionaries(st.sampled_from(KEYS), st.text("xyz", min_size=1), max_size=5).filter(
    lambda names: all(len({names.get(key, key) for key in level}) == len(level) for level in LEVELS)
)


def written(world: World, made: Build, names: dict[str, str] | None = None) -> dict[str, Any]:
    line: dict[str, Any] = orjson.loads(orjson.dumps(encode_envelope(world.forest, made, ABOUT, names), option=LINE))
    return line


def branching() -> World:
    """Two conversations with one beginning, so that two chains share an answer."""
    world = World()
    begin = [user("begin")]
    world.ask(begin, assistant("yes"))
    for question in ("one", "two"):
        world.ask([*begin, assistant("yes"), user(question)], assistant(f"done {question}"))
    return world


@settings(deadline=None, max_examples=80)
@given(worlds(), BUILDERS, CONFIGS, NAMES)
def test_traces_come_back_whatever_the_keys_are_called(
    world: World, strategy: str, config: dict[str, Any], names: dict[str, str]
) -> None:
    made = build(world.forest, strategy, config)
    read = decode_envelope(written(world, made, names), names)
    assert len(read) == len(made.traces)
    assert all(map(equal, read, made.traces))


@settings(deadline=None, max_examples=80)
@given(worlds(), BUILDERS, CONFIGS)
def test_every_trained_span_has_one_owner(world: World, strategy: str, config: dict[str, Any]) -> None:
    made = build(world.forest, strategy, config)
    envelope = written(world, made)
    owners = Counter(
        span["call_index"] for trace in envelope["training_traces"] for span in trace["sampled_spans"] if span["owned"]
    )
    assert not owners or max(owners.values()) == 1
    trained = 0
    for trace in envelope["training_traces"]:
        for span in trace["sampled_spans"]:
            truth = world.calls[span["call_index"]].sampled[: span["end"] - span["start"]].tolist()
            assert trace["token_ids"][span["start"] : span["end"]] == truth
            assert set(trace["loss_mask"][span["start"] : span["end"]]) == {int(span["owned"])}
            trained += len(truth) * span["owned"]
    assert trained == made.trained_tokens
    sampled = sum(len(truth.sampled) for truth in world.calls)
    assert trained + sum(envelope["dropped_tokens"].values()) == sampled


def test_a_shared_answer_is_context_where_another_trace_owns_it() -> None:
    world = branching()
    envelope = written(world, build(world.forest))
    spans = [
        [(span["call_index"], span["owned"]) for span in trace["sampled_spans"]]
        for trace in envelope["training_traces"]
    ]
    assert sorted(spans) == [[(0, False), (1, True)], [(0, True), (2, True)]]
    assert {name: envelope[name] for name in ABOUT} == ABOUT


def test_a_build_with_two_owners_is_refused() -> None:
    world = branching()
    made = build(world.forest)
    made.traces[1].turns = made.traces[0].turns
    with pytest.raises(EnvelopeError, match="traces 0 and 1 both own turn 0"):
        written(world, made)


def test_a_loss_that_no_turn_bears_out_is_refused() -> None:
    world = branching()
    made = build(world.forest)
    made.traces[0].loss_mask[0] = True
    with pytest.raises(EnvelopeError, match="trace 0 has loss mask 1 on token 0"):
        written(world, made)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param({"tokens": "ids"}, "no key 'tokens'", id="unknown"),
        pytest.param({"token_ids": "loss_mask"}, "named 'loss_mask'", id="taken"),
    ],
)
def test_names_that_do_not_work_are_refused(names: dict[str, str], message: str) -> None:
    world = branching()
    with pytest.raises(EnvelopeError, match=message):
        written(world, build(world.forest), names)


def test_an_envelope_with_other_names_is_not_misread() -> None:
    world = branching()
    envelope = written(world, build(world.forest), {"token_ids": "input_ids"})
    assert "input_ids" in envelope["training_traces"][0]
    with pytest.raises(EnvelopeError, match="no key 'token_ids'"):
        decode_envelope(envelope)
