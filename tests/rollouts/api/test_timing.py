# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from nemo_gym_polar.rollouts.api.views import timing


def test_stages_make_up_the_whole_and_their_parts_are_told_besides() -> None:
    seconds = {"queued": 0.5, "running": 2.0, "postrun": 1.0, "evaluate": 0.75, "build": 0.1, "evaluator_prewarm": 1.5}
    assert timing(seconds) == {
        "register_to_init_queue_ms": 500.0,
        "run_ms": 2000.0,
        "postrun_ms": 1000.0,
        "eval_ms": 750.0,
        "build_ms": 100.0,
        "evaluator_prewarm_ms": 1500.0,
        "e2e_ms": 3500.0,
    }


def test_a_session_that_never_began() -> None:
    assert timing({}) == {"e2e_ms": 0}
