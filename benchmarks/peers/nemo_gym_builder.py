# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Times NeMo Gym's builder and projection on calls from stdin; runs in its environment. Prints one JSON line."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from nemo_gym.token_id_capture.builder import project_main_chain_response, run_builder
from nemo_gym.token_id_capture.records import ParentResolutionStatus, TokenEntry, stamp_lineage


def entries(calls: list[dict[str, Any]]) -> list[TokenEntry]:
    """As capture records them: full prompts, each call's parent resolved."""
    made: list[TokenEntry] = []
    for at, call in enumerate(calls):
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "said"}]}
        entry = TokenEntry(
            rollout_id="r",
            model_call_id=f"c{at}",
            prompt_token_ids=call["prompt"],
            generation_token_ids=call["sampled"],
            generation_log_probs=call["logprobs"],
            output_items=[said],
            token_item_index=0,
        )
        resolved = ParentResolutionStatus.RESOLVED if made else ParentResolutionStatus.ROOT
        parent = made[-1].model_call_id if made else None
        made.append(stamp_lineage(entry, parent, parent_resolution=resolved))
    return made


def main(repetitions: int) -> None:
    recorded = entries(json.load(sys.stdin))
    taken = []
    for _ in range(repetitions):
        started = time.process_time()
        built = run_builder(recorded)
        project_main_chain_response("r", built)
        taken.append(1e3 * (time.process_time() - started))
    print(json.dumps({"finish_ms": min(taken), "trajectories": len(built.chains)}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
