# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What it takes to turn a finished session into training data: our builder beside the peers' own.

    python benchmarks/peers.py install nemo_gym agentcore     # once
    python benchmarks/finish.py [--json] [--turns 20 50 100 200] [--only NAME …]

A session of one chain: 8,000 tokens, then 150 sampled and 250 observed a turn. All get the same calls and have them in
memory; what is timed is the step from recorded calls to trajectories, best of the repetitions, in milliseconds of CPU.
Ours is a walk over a forest that was built while the session ran (`forest.py` tells what that costs a call); the peers
run in their own environments. rllm-model-gateway and LiteLLM have no builder; agent-lightning's is in its trainer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from typing import Any

from forest import Session
from peers import PEERS
from processes import ROOT

from nemo_gym_polar.forest.builders import build

REPETITIONS = 5
SCRIPTS = {"nemo-gym": "nemo_gym", "agentcore": "agentcore"}


def record(turns: int) -> tuple[Session, list[dict[str, Any]]]:
    """A session as it ran, and its calls: prompt, sampled ids and log-probabilities."""
    session, calls = Session(), []
    for at in range(turns):
        generation = session.generation(at)
        session.forest.append(session.forest.match(session.request()), generation)
        prompt = session.tokens.tolist()
        sampled, logprobs = generation.sampled.tolist(), generation.logprobs.tolist()
        calls.append({"prompt": prompt, "sampled": sampled, "logprobs": logprobs})
        session.observe(generation)
    return session, calls


def ours(session: Session) -> dict[str, float]:
    taken = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        built = build(session.forest)
        taken.append(1e3 * (time.process_time() - started))
    return {"finish_ms": min(taken), "trajectories": len(built.traces)}


def theirs(name: str, calls: list[dict[str, Any]]) -> dict[str, float]:
    script = str(ROOT / "benchmarks" / "peers" / f"{SCRIPTS[name]}_builder.py")
    command = [PEERS[SCRIPTS[name]].program("python"), script, str(REPETITIONS)]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"benchmarks: {name}'s builder failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(turns: list[int], names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"load_before": os.getloadavg(), "sessions": []}
    for length in turns:
        session, calls = record(length)
        row: dict[str, Any] = {"turns": length, "tokens": session.forest[length - 1].length, "polar": ours(session)}
        found["sessions"].append(row | {name: theirs(name, calls) for name in names})
    return found


def table(found: dict[str, Any]) -> str:
    lines = []
    for row in found["sessions"]:
        cells = [f"{name} {value['finish_ms']:.2f} ms" for name, value in row.items() if isinstance(value, dict)]
        lines.append(f"{row['turns']:>5} turns, {row['tokens']} tokens: " + ", ".join(cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--turns", type=int, nargs="+", default=[20, 50, 100, 200], help="sessions of these lengths")
    parser.add_argument("--only", nargs="*", default=list(SCRIPTS), choices=list(SCRIPTS), help="these peers")
    arguments = parser.parse_args()
    found = measure(arguments.turns, arguments.only)
    print(json.dumps(found, indent=1) if arguments.json else table(found))


if __name__ == "__main__":
    main()
