# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary
from nemo_gym_polar.policy.engine import Engine, EngineStoppedError
from nemo_gym_polar.policy.sampling import SamplingParams
from nemo_gym_polar.policy.scheduler import Scheduler
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.weights import WeightsError
from tests.support.policies import TOLERANCE, random_tokens, worst_error

FOREVER = 1_000_000
Make = Callable[..., SampledSequence]


@pytest.fixture
def make(tokenizer: Tokenizer) -> Make:
    vocabulary = Vocabulary(tokenizer)

    def sequence(tokens: int, seed: int = 0) -> SampledSequence:
        params = SamplingParams(max_tokens=tokens, seed=seed)
        return SampledSequence(random_tokens(20, seed=seed), params, frozenset(), TextStream(vocabulary))

    return sequence


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)


async def grown(sequence: SampledSequence, tokens: int = 1) -> None:
    await until(lambda: len(sequence.choices) >= tokens)


async def ended(sequence: SampledSequence) -> None:
    await until(lambda: sequence.finish_reason is not None)


async def test_many_callers_share_it(model: Qwen3ForCausalLM, decoder: Decoder, make: Make) -> None:
    sequences = [make(20 + seed, seed) for seed in range(12)]
    async with Engine(Scheduler(decoder, rows=4)) as engine:
        await asyncio.gather(*[engine.finish(sequence) for sequence in sequences])
        assert engine.sampled_tokens == sum(20 + seed for seed in range(12))
    assert max(worst_error(model, sequence) for sequence in sequences) < TOLERANCE


async def test_a_watcher_sees_it_grow(decoder: Decoder, make: Make) -> None:
    sequence = make(300)
    async with Engine(Scheduler(decoder)) as engine:
        seen = [sequence.view.tokens async for _ in engine.watch(sequence)]
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert sequence.finish_reason == "length"


async def test_a_cancelled_caller_aborts_its_answer(decoder: Decoder, make: Make) -> None:
    sequence, other = make(FOREVER), make(200, 1)
    async with Engine(Scheduler(decoder)) as engine:
        caller = asyncio.create_task(engine.finish(sequence))
        await grown(sequence)
        caller.cancel()
        await asyncio.wait([caller])
        await engine.finish(other)
        await ended(sequence)
        assert engine.running == 0
    assert (sequence.finish_reason, other.finish_reason) == ("abort", "length")


async def test_a_caller_cancelled_at_once_leaves_nothing_behind(decoder: Decoder, make: Make) -> None:
    async with Engine(Scheduler(decoder)) as engine:
        for seed in range(20):
            caller = asyncio.create_task(engine.finish(make(FOREVER, seed)))
            for _ in range(seed % 4):
                await asyncio.sleep(0)
            caller.cancel()
            await asyncio.wait([caller])
        await engine.finish(make(5))
        assert engine.running + engine.waiting == 0


async def test_a_watcher_that_leaves_aborts(decoder: Decoder, make: Make) -> None:
    sequence = make(FOREVER)
    async with Engine(Scheduler(decoder)) as engine:
        async with aclosing(engine.watch(sequence)) as moves:
            await anext(moves)
        await ended(sequence)
        assert sequence.finish_reason == "abort"


async def test_pause_wait_lets_answers_end_and_holds_new_ones(decoder: Decoder, make: Make) -> None:
    running, held = make(400), make(5, 1)
    async with Engine(Scheduler(decoder)) as engine:
        first = asyncio.create_task(engine.finish(running))
        await grown(running)
        pause = asyncio.create_task(engine.pause("wait"))
        second = asyncio.create_task(engine.finish(held))
        await pause
        assert engine.paused
        assert running.finish_reason == "length"
        await asyncio.sleep(0.02)
        assert held.choices == []
        await engine.resume()
        await asyncio.gather(first, second)
        assert not engine.paused


async def test_pause_keep_freezes_and_goes_on(
    model: Qwen3ForCausalLM, other_model: Qwen3ForCausalLM, other_dir: Path, decoder: Decoder, make: Make
) -> None:
    sequence = make(2000)
    async with Engine(Scheduler(decoder, version="1")) as engine:
        caller = asyncio.create_task(engine.finish(sequence))
        await grown(sequence, 10)
        await engine.pause("keep")
        count = len(sequence.choices)
        await asyncio.sleep(0.02)
        assert len(sequence.choices) == count
        await engine.load(other_dir)
        await engine.set_version("2")
        await engine.resume()
        await caller
    assert [span.version for span in sequence.versions] == ["1", "2"]
    assert sequence.versions[0].end == count
    assert worst_error(model, sequence, 0, count) < TOLERANCE
    assert worst_error(other_model, sequence, count) < TOLERANCE


async def test_pause_abort_cuts_everything_off(decoder: Decoder, make: Make) -> None:
    sequences = [make(FOREVER, seed) for seed in range(3)]
    async with Engine(Scheduler(decoder, rows=2)) as engine:
        callers = [asyncio.create_task(engine.finish(sequence)) for sequence in sequences]
        await grown(sequences[0])
        await engine.pause("abort")
        await asyncio.wait_for(asyncio.gather(*callers), 5)
        await engine.resume()
        await engine.finish(make(3))
    assert {sequence.finish_reason for sequence in sequences} == {"abort"}


async def test_a_pause_that_nobody_waits_for_does_no_harm(decoder: Decoder, make: Make) -> None:
    sequence = make(2000)
    async with Engine(Scheduler(decoder)) as engine:
        caller = asyncio.create_task(engine.finish(sequence))
        await grown(sequence)
        pause = asyncio.create_task(engine.pause("wait"))
        await asyncio.sleep(0.005)
        pause.cancel()
        await caller
        await engine.resume()
        await engine.finish(make(3))


async def test_refused_weights_are_the_callers_error(decoder: Decoder, make: Make, tmp_path: Path) -> None:
    async with Engine(Scheduler(decoder)) as engine:
        with pytest.raises(WeightsError, match="give a model directory"):
            await engine.load(tmp_path)
        await engine.finish(make(3))
        assert engine.weight_loads == 0


async def test_a_closed_engine_refuses_work(decoder: Decoder, make: Make) -> None:
    async with Engine(Scheduler(decoder)) as engine:
        pass
    assert not engine.alive
    with pytest.raises(EngineStoppedError, match="start the server again"):
        await engine.finish(make(3))


async def test_closing_ends_what_runs(decoder: Decoder, make: Make) -> None:
    sequence = make(FOREVER)
    async with Engine(Scheduler(decoder)) as engine:
        caller = asyncio.create_task(engine.finish(sequence))
        await grown(sequence)
    await asyncio.wait_for(caller, 5)
    assert (sequence.finish_reason, sequence.error) == ("error", "the engine has stopped")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_broken_step_fails_its_callers_loudly(decoder: Decoder, make: Make) -> None:
    """Nothing waits for ever when the thread dies: here of weights whose width has been tampered with."""
    sequence = make(FOREVER)
    async with Engine(Scheduler(decoder)) as engine:
        caller = asyncio.create_task(engine.finish(sequence))
        await grown(sequence)
        decoder._head = torch.zeros(1, 1)
        await asyncio.wait_for(caller, 5)
        assert sequence.finish_reason == "error"
        await until(lambda: not engine.alive)
        with pytest.raises(EngineStoppedError):
            await engine.finish(make(3))
