# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The trainer learns what is rewarded, and nothing else: a game over tokens, played by the policy itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.tokens import Bool, Float32, Int32
from nemo_gym_polar.training.settings import OptimizerSettings, TrainerSettings
from nemo_gym_polar.training.trainer import Trainer
from tests.support.sessions import VOCAB, make_session

HALF = VOCAB // 2
STEPS, TASKS, SAMPLES, TURNS = 16, 6, 8, 2


class Game:
    """Each turn shows one of two tokens; a good answer is any token of the half of the vocabulary that it is in."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.sample = torch.Generator().manual_seed(seed)

    def shown(self) -> list[int]:
        return [2, 3, int(self.draw.choice([HALF // 2, HALF + HALF // 2]))]

    def group(self, trainer: Trainer, samples: int = SAMPLES) -> list[SessionResult]:
        """`samples` sessions that are shown the same."""
        shown = [self.shown() for _ in range(TURNS)]
        rows = np.tile(np.array(shown[0]), (samples, 1))
        logprobs = np.zeros(rows.shape, np.float32)
        good = np.zeros(samples)
        for turn in range(TURNS):
            answers, said = self.answer(trainer, rows)
            good += (answers >= HALF) == (shown[turn][-1] >= HALF)
            rows, logprobs = np.column_stack([rows, answers]), np.column_stack([logprobs, said])
            if turn + 1 < TURNS:
                more = np.tile(np.array(shown[turn + 1]), (samples, 1))
                rows = np.column_stack([rows, more])
                logprobs = np.column_stack([logprobs, np.zeros(more.shape)])
        mask = np.array(([False] * 3 + [True]) * TURNS)
        return [
            make_session(good[index] / TURNS, [self.trace(rows[index], logprobs[index], mask)], sample=index)
            for index in range(samples)
        ]

    @torch.no_grad()
    def answer(self, trainer: Trainer, rows: np.ndarray) -> tuple[Int32, Float32]:
        logits = trainer.model(input_ids=torch.from_numpy(rows.astype(np.int64))).logits[:, -1]
        logprobs = torch.log_softmax(logits.float(), -1)
        chosen = torch.multinomial(logprobs.exp(), 1, generator=self.sample)
        return chosen[:, 0].numpy().astype(np.int32), logprobs.gather(-1, chosen)[:, 0].numpy()

    @staticmethod
    def trace(row: Int32, logprobs: Float32, mask: Bool) -> Trace:
        ids, said = row.astype(np.int32), logprobs.astype(np.float32)
        return Trace("s", 0, "main", token_ids=ids, loss_mask=mask, logprobs=said, turns=tuple(range(TURNS)))


def play(policy_dir: Path, lr: float, seed: int) -> tuple[float, float]:
    """The mean reward before and after a short run."""
    optimizer = OptimizerSettings(lr=lr, warmup_steps=2)
    trainer = Trainer(policy_dir, TrainerSettings(steps=STEPS, device="cpu", optimizer=optimizer), seed=seed)
    game = Game(seed)

    def mean_reward() -> float:
        unseen = Game(1000)
        return float(np.mean([one.reward for _ in range(40) for one in unseen.group(trainer, 4)]))

    before = mean_reward()
    for _ in range(STEPS):
        metrics = trainer.step([game.group(trainer) for _ in range(TASKS)])
        assert metrics.values.get("logprob_error_max", 0.0) < 1e-4
    return before, mean_reward()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_rewarded_is_learnt(policy_dir: Path, seed: int) -> None:
    before, after = play(policy_dir, 1e-2, seed)
    assert before < 0.65
    assert after > 0.9


def test_nothing_is_learnt_at_rate_zero(policy_dir: Path) -> None:
    before, after = play(policy_dir, 0.0, 0)
    assert after == before
