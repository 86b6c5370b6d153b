# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`per_request` against `prefix_merging`: what the local trainer has to do for one and the same workload.

    python benchmarks/builder_ablation.py [--run DIR] [--groups N] [--samples N] [--turns N …] [--json]

Journals are replayed through both builders, and the trainer learns once from what each made: one pass, an update for
every `--sequences` traces. `--run` takes the journals of a real run; without it, sessions are recorded first
(`recorded_sessions.py`), a workload for each of `--turns`. The model attends to the whole context, as large ones do, so
that a context that is read again costs what it costs there.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import measured
from recorded_sessions import VOCABULARY, of_run, recorded
from rows import shown

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.model import PolicySize, create_policy, save_policy
from nemo_gym_polar.policy.tokenizer import make_tokenizer
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.training.batch import flatten
from nemo_gym_polar.training.credit import assign_credit
from nemo_gym_polar.training.packing import pack
from nemo_gym_polar.training.settings import PackingSettings, TrainerSettings
from nemo_gym_polar.training.trainer import Trainer

BUILDERS = ("per_request", "prefix_merging")
Groups = list[list[Forest]]


@dataclass(slots=True)
class Work:
    """What a builder made of the workload, and what learning from it took. Tokens are inputs of forward passes."""

    builder: str
    traces: int
    updates: int
    trained_tokens: int
    input_tokens: int
    padded_tokens: int
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


def results(groups: Iterable[Iterable[Forest]], builder: str) -> list[list[SessionResult]]:
    """Every other session of a group was worth something, so that all of them give gradient."""
    return [
        [
            SessionResult(
                session_id=forest.session_id,
                task_id=str(number),
                sample=sample,
                status=SessionStatus.COMPLETED,
                reward=float(sample % 2),
                traces=build(forest, builder).traces,
            )
            for sample, forest in enumerate(group)
        ]
        for number, group in enumerate(groups)
    ]


def learn(policy: Path, groups: list[list[SessionResult]], builder: str, sequences: int) -> Work:
    traces = [trace for group in groups for session in group for trace in session.traces]
    packing = PackingSettings(row_tokens=2048, microbatch_tokens=4096)
    settings = TrainerSettings(
        steps=1, epochs=1, minibatches=math.ceil(len(traces) / sequences), packing=packing, threads=1
    )
    trainer = Trainer(policy, settings, seed=0)
    inputs, padded = sizes(groups, settings, sequences)
    wall, cpu = time.perf_counter(), time.process_time()
    metrics = trainer.step(groups)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    return Work(builder, len(traces), metrics.updates, metrics.trained_tokens, inputs, padded, *taken)


def sizes(groups: list[list[SessionResult]], settings: TrainerSettings, sequences: int) -> tuple[int, int]:
    """Tokens that forward passes read, and the padding beside them, for the packing that an epoch has."""
    batch = flatten(assign_credit(groups, settings.credit), settings.loss, None, None)
    inputs = rows = 0
    for at in range(0, len(batch.pieces), sequences):
        pieces = [piece for example in batch.pieces[at : at + sequences] for piece in example]
        packing = settings.packing
        made = pack(pieces, row_tokens=packing.row_tokens, microbatch_tokens=packing.microbatch_tokens)
        inputs += sum(map(len, pieces))
        rows += sum(microbatch.input_ids.numel() for microbatch in made)
    return inputs, rows - inputs


def compare(groups: Groups, sequences: int) -> list[Work]:
    with tempfile.TemporaryDirectory() as root:
        policy = Path(root)
        tokenizer = make_tokenizer(seed_corpus(), vocab_size=VOCABULARY)
        size = PolicySize(
            layers=2, width=32, heads=2, kv_heads=1, feed_forward=64, head_width=16, window=1 << 20, context=1 << 20
        )
        save_policy(create_policy(tokenizer, size), tokenizer, policy)
        learn(policy, results(groups[:1], "prefix_merging"), "", sequences)  # a first step pays for what is loaded late
        return [learn(policy, results(groups, builder), builder, sequences) for builder in BUILDERS]


def ratios(works: Sequence[Work]) -> dict[str, float]:
    """How many times more `per_request` takes."""
    more, less = map(asdict, works)
    return {name: more[name] / less[name] for name in more if name != "builder" and less[name]}


def workload(groups: Groups, turns: int | None, sequences: int) -> dict[str, Any]:
    """`turns` is the median that was asked for, None for a real run."""
    forests = [forest for group in groups for forest in group]
    works = compare(groups, sequences)
    sizes = {"turns": turns, "sessions": len(forests), "calls": sum(len(forest.turns) for forest in forests)}
    return {**sizes, "builders": [asdict(work) for work in works], "ratios": ratios(works)}


def workloads(options: argparse.Namespace) -> list[dict[str, Any]]:
    if options.run:
        groups = of_run(options.run, options.samples)
        if not groups:
            raise SystemExit(f"benchmarks: fewer than {options.samples} journals below {options.run}")
        return [workload(groups, None, options.sequences)]
    found = []
    for turns in options.turns:
        with tempfile.TemporaryDirectory() as root:
            groups = asyncio.run(recorded(Path(root), options.groups, options.samples, turns))
        found.append(workload(groups, turns, options.sequences))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="replay the journals below this directory")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--turns", type=int, nargs="+", default=[6, 12, 24], help="median of a session")
    parser.add_argument("--sequences", type=int, default=8, help="traces of one update")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with measured() as here:
        found = workloads(options)
    rows = [row for one in found for row in (*one["builders"], {"turns": one["turns"], **one["ratios"]})]
    print(shown({"machine": here, "sequences": options.sequences, "workloads": found}, rows, as_json=options.json))


if __name__ == "__main__":
    main()
