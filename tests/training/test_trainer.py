# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.model_dir import load_model
from nemo_gym_polar.training.settings import TrainerSettings
from nemo_gym_polar.training.trainer import StepMetrics, Trainer
from tests.support.sessions import make_group, make_policy

Weights = dict[str, torch.Tensor]


def settings(**changed: Any) -> TrainerSettings:
    optimizer = {"lr": 1e-2, "warmup_steps": 1} | changed.pop("optimizer", {})
    return TrainerSettings.model_validate({"steps": 4, "device": "cpu", "optimizer": optimizer} | changed)


def groups(step: int) -> list[list[SessionResult]]:
    return [make_group([0, 1, 1, 0.5], seed=10 * step + index, task=str(index)) for index in range(3)]


def weights(trainer: Trainer) -> Weights:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def same(one: Weights, other: Weights) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def curve(metrics: list[StepMetrics]) -> list[tuple[Any, ...]]:
    return [(one.step, one.lr, one.updates, one.gradient_norm, dict(one.values)) for one in metrics]


@pytest.fixture
def behaving(policy_dir: Path) -> list[list[SessionResult]]:
    """Sessions that carry the log-probabilities of the policy itself, as an engine would report them."""
    model = load_model(policy_dir, device=torch.device("cpu"), attention="eager")
    made = groups(0)
    for session in (session for group in made for session in group):
        (trace,) = session.traces
        ids = torch.from_numpy(trace.token_ids.astype(np.int64))
        with torch.no_grad():
            logprobs = torch.log_softmax(model(input_ids=ids[None]).logits[0].double(), -1)
        trained = np.flatnonzero(trace.loss_mask)
        trace.logprobs[trained] = logprobs[trained - 1, ids[trained]].numpy()
    return made


@pytest.mark.parametrize("minibatches", [1, 3])
def test_two_steps_resumed_for_two_are_four_steps(policy_dir: Path, tmp_path: Path, minibatches: int) -> None:
    chosen = settings(minibatches=minibatches, optimizer={"weight_decay": 0.1})
    through = Trainer(policy_dir, chosen, seed=3)
    uninterrupted = [through.step(groups(step)) for step in range(4)]

    first = Trainer(policy_dir, chosen, seed=3)
    begun = [first.step(groups(step)) for step in range(2)]
    first.save(tmp_path / "step-2", {"drawn": 7})
    second = Trainer(policy_dir, chosen, seed=99)
    assert second.restore(tmp_path / "step-2") == {"drawn": 7}
    ended = [second.step(groups(step)) for step in range(2, 4)]

    assert curve(begun + ended) == curve(uninterrupted)
    assert same(weights(second), weights(through))


def test_learning_rate_zero_changes_nothing(policy_dir: Path) -> None:
    trainer = Trainer(policy_dir, settings(optimizer={"lr": 0.0, "weight_decay": 0.1}), seed=0)
    before = weights(trainer)
    metrics = trainer.step(groups(0))
    assert metrics.updates == 3 and metrics.gradient_norm > 0
    assert same(weights(trainer), before)


def test_groups_without_variance_make_no_update(policy_dir: Path) -> None:
    trainer = Trainer(policy_dir, settings(), seed=0)
    trainer.step(groups(0))
    before = weights(trainer)
    metrics = trainer.step([make_group([1, 1, 1])])
    assert (metrics.updates, metrics.trained_tokens, metrics.credit.zero_variance_groups) == (0, 0, 1)
    assert same(weights(trainer), before)
    assert trainer.steps == 2


def test_the_trainer_agrees_with_the_engine(policy_dir: Path, behaving: list[list[SessionResult]]) -> None:
    """Also in the first pass, where the proximal log-probabilities come from the pass that is learnt from."""
    for minibatches in (1, 4):
        metrics = Trainer(policy_dir, settings(minibatches=minibatches, epochs=1), seed=0).step(behaving)
        assert metrics.values["logprob_error_max"] < 1e-5
        assert metrics.values["tis_weight"] == pytest.approx(1, abs=1e-5)
        assert metrics.values["tokens"] == metrics.trained_tokens == 3 * 4 * 7
    assert metrics.updates == 4


def test_both_ways_to_the_proximal_logprobs_give_the_same_step(policy_dir: Path) -> None:
    """A price on leaving the initial policy recomputes them; one of next to nothing changes nothing else."""
    trainers = [Trainer(policy_dir, settings(loss={"kl_weight": price}), seed=0) for price in (0.0, 1e-12)]
    plain, priced = [trainer.step(groups(0)) for trainer in trainers]
    assert priced.values["kl_reference"] == pytest.approx(0, abs=1e-6)
    for name, value in plain.values.items():
        assert priced.values[name] == pytest.approx(value, rel=1e-3, abs=1e-5)


def test_the_step_does_not_depend_on_how_it_is_cut_up(policy_dir: Path) -> None:
    rows = [{"row_tokens": 400, "microbatch_tokens": 4000}, {"row_tokens": 8, "microbatch_tokens": 16}]
    norms = [Trainer(policy_dir, settings(packing=row, epochs=1), seed=0).step(groups(0)) for row in rows]
    assert norms[0].gradient_norm == pytest.approx(norms[1].gradient_norm, rel=1e-4)


def test_minibatches_together_weigh_as_much_as_the_batch(policy_dir: Path) -> None:
    """With nothing learnt, the mean gradient of the parts is that of the whole."""

    def gradient(minibatches: int) -> torch.Tensor:
        chosen = settings(minibatches=minibatches, epochs=1, optimizer={"lr": 0.0, "max_grad_norm": 1e9})
        trainer = Trainer(policy_dir, chosen, seed=0)
        total = torch.zeros(trainer.model.lm_head.weight.shape)
        hook = trainer.model.lm_head.weight.register_post_accumulate_grad_hook(lambda _: None)
        original = trainer._optimizer.step

        def collect(closure: None = None) -> None:
            total.add_(trainer.model.lm_head.weight.grad / minibatches)
            original(closure)

        trainer._optimizer.step = collect  # type: ignore[method-assign]  # looks on, then does as before
        trainer.step(groups(0))
        hook.remove()
        return total

    assert torch.allclose(gradient(1), gradient(4), atol=1e-6)


def test_what_is_too_long_is_counted(policy_dir: Path) -> None:
    trainer = Trainer(policy_dir, settings(packing={"max_tokens": 5}), seed=0)
    metrics = trainer.step(groups(0))
    assert metrics.trained_tokens == 0
    assert metrics.credit.untrained["too_long"] == 3 * 4 * 7


def test_a_price_on_leaving_the_initial_policy_keeps_it_near(policy_dir: Path) -> None:
    distances = []
    for price in (1e-9, 3.0):
        trainer = Trainer(policy_dir, settings(loss={"kl_weight": price}), seed=0)
        metrics = [trainer.step(groups(step)) for step in range(4)]
        distances.append(metrics[-1].values["kl_reference"])
    assert distances[1] < distances[0] / 2


def test_saved_policies_load_as_they_are(policy_dir: Path, tmp_path: Path) -> None:
    trainer = Trainer(policy_dir, settings(), seed=0)
    trainer.step(groups(0))
    trainer.save_policy(tmp_path / "out")
    first = (tmp_path / "out" / "model.safetensors").stat().st_ino
    trainer.step(groups(1))
    trainer.save_policy(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert (tmp_path / "out" / "model.safetensors").stat().st_ino != first
    assert same(load_file(tmp_path / "out" / "model.safetensors"), weights(trainer))


def test_a_checkpoint_of_another_policy_is_refused(policy_dir: Path, tmp_path: Path) -> None:
    wider = Trainer(make_policy(tmp_path / "wider", width=64), settings(), seed=0)
    wider.save(tmp_path / "step-0")
    with pytest.raises(TrainingError, match="is not one of this policy"):
        Trainer(policy_dir, settings(), seed=0).restore(tmp_path / "step-0")


def test_a_logprob_that_is_no_number_is_refused(policy_dir: Path) -> None:
    batch = groups(0)
    batch[1][2].traces[0].logprobs[10] = np.nan
    with pytest.raises(TrainingError, match="no finite log-probability"):
        Trainer(policy_dir, settings(), seed=0).step(batch)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"device": "tpu9"}, "trainer.device='tpu9'"), ({"attention": "flash_attention_2"}, "can't be loaded")],
)
def test_what_this_machine_lacks_is_said(policy_dir: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Trainer(policy_dir, settings(**changed), seed=0)


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"config\.json is missing"):
        Trainer(tmp_path, settings(), seed=0)


def test_bfloat16_learns_close_to_float32(policy_dir: Path, behaving: list[list[SessionResult]]) -> None:
    low = Trainer(policy_dir, settings(precision="bfloat16", epochs=1), seed=0).step(behaving)
    full = Trainer(policy_dir, settings(epochs=1), seed=0).step(behaving)
    assert 1e-5 < low.values["logprob_error"] < 0.1
    assert low.gradient_norm == pytest.approx(full.gradient_norm, rel=0.1)


def test_a_reward_for_staying_undecided_keeps_entropy_up(policy_dir: Path) -> None:
    entropies = []
    for weight in (0.0, 1.0):
        trainer = Trainer(policy_dir, settings(loss={"entropy_weight": weight}), seed=0)
        entropies.append([trainer.step(groups(0)).values["entropy"] for _ in range(3)])
    assert entropies[0][0] == entropies[1][0]
    assert entropies[1][-1] > entropies[0][-1]
