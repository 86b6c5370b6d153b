# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An evaluation that names a seed draws the same way every time, each sample in its own."""

from __future__ import annotations

from tests.support.rollouts import Stand, task


async def test_every_sample_has_its_own_seed(bench: Stand) -> None:
    await bench.service.run(task(num_samples=2, metadata={"eval_sampling_seed_base": 1234}))
    assert {served.parameters["seed"] for served in bench.engine.served} == {1234, 1235}


async def test_training_has_none(bench: Stand) -> None:
    await bench.service.run(task())
    assert [served.parameters.get("seed") for served in bench.engine.served] == [None]
