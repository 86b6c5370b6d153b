# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Times agentcore-rl-toolkit's tree on calls from stdin; runs in its environment. Prints one JSON line."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from agentcore_rl_toolkit.rollout_gateway import BaseTrace, TrajectoryManager, TurnRecord


def recorded(calls: list[dict[str, Any]]) -> TrajectoryManager:
    manager, history = TrajectoryManager(), [{"role": "user", "content": "Fix the bug."}]
    for at, call in enumerate(calls):
        turn = TurnRecord(call["prompt"], call["sampled"], "stop", call["logprobs"])
        answer = {"role": "assistant", "content": f"answer {at}"}
        manager.record_turn("s", turn=turn, prompt_messages=list(history), response_message=answer)
        history += [answer, {"role": "tool", "content": f"result {at}"}]
    return manager


def main(repetitions: int) -> None:
    calls = json.load(sys.stdin)
    taken = []
    for _ in range(repetitions):
        manager = recorded(calls)
        started = time.process_time()
        rows = manager.get_trajectory("s", base_sample=BaseTrace())
        taken.append(1e3 * (time.process_time() - started))
    print(json.dumps({"finish_ms": min(taken), "trajectories": len(rows)}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
