# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The result of one `/run`, in the one shape that NeMo Gym stores and NeMo RL reads.

NeMo RL averages every top-level number and takes their names from the first row of a batch, so all results have the
same keys. It looks for the mask flag in `instance_config`; NeMo Gym writes it at the top. Both get it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from nemo_gym_polar.environment.protocol import Verify
from nemo_gym_polar.forest.trace import TraceKind
from nemo_gym_polar.rollouts.task import SessionStatus

Result = dict[str, Any]

STAGES = ("queued", "init", "ready", "running", "finished", "postrun", "evaluate")
COUNTS = (
    "model_calls",
    "traces",
    "chain_tokens",
    "delivered_tokens",
    *(f"undelivered_{kind}_tokens" for kind in get_args(TraceKind)),
    "dropped_tokens",
    "placeholder_tokens",
)
"""The numbers of a result, 0 where nothing was counted."""


def result(
    ask: Verify,
    response: Mapping[str, Any],
    *,
    counts: Mapping[str, int],
    dropped: Mapping[str, int],
    first_prompt: str = "",
    error: str | None = None,
    failure: str | None = None,
) -> Result:
    """`failure` names why the rollout must not be trained on; NeMo Gym then keeps it apart and tries it again.

    `first_prompt` is a digest of the tokens that NeMo RL groups by: equal within a task, or the group is none.
    """
    masked = failure is not None
    made: Result = {
        "responses_create_params": ask.responses_create_params,
        "response": dict(response),
        "reward": 0.0 if masked else float(ask.reward),
        "mask_sample": masked,
        "instance_config": {"mask_sample": masked},
        "timed_out": ask.status is SessionStatus.TIMEOUT,
        "session_id": ask.session_id,
        "task_id": ask.task_id,
        "status": str(ask.status),
        "error": error or ask.error,
        "first_prompt": first_prompt,
        "dropped_tokens_by_cause": dict(dropped),
        "evaluation": ask.evaluation,
        **{name: counts.get(name, 0) for name in COUNTS},
        **{f"seconds_{stage}": float(ask.timing.get(stage, 0.0)) for stage in STAGES},
    }
    if failure is not None:
        made["_ng_failure_class"] = failure
    return made
