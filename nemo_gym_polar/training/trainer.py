# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The local GRPO trainer: groups of finished sessions in, better weights out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.batch import StepBatch, flatten
from nemo_gym_polar.training.credit import Credit, TraceScore, assign_credit
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.forward import token_logprobs
from nemo_gym_polar.training.loss import TokenBatch, measure, merge, policy_loss
from nemo_gym_polar.training.model_dir import choose_device, load_model, save_model
from nemo_gym_polar.training.packing import Microbatch, Segment, pack, receptive_field
from nemo_gym_polar.training.schedule import learning_rate
from nemo_gym_polar.training.settings import TrainerSettings


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """One step. `credit` has the counts, `values` the means over the trained tokens of the first and of all passes
    (see `loss.measure`); it is empty if nothing gave gradient."""

    step: int
    lr: float
    updates: int
    trained_tokens: int
    gradient_norm: float
    seconds: float
    credit: Credit
    values: Mapping[str, float]


class Trainer:
    """Owns the model and the optimiser. One call at a time, from whichever thread."""

    def __init__(
        self,
        policy_dir: Path,
        settings: TrainerSettings,
        *,
        seed: int,
        temperature: float = 1.0,
        score: TraceScore | None = None,
    ) -> None:
        """`temperature` is the one that the engine samples with; `score` may reward traces by themselves."""
        self.settings = settings
        self.policy_dir = policy_dir
        self.steps = 0
        self._score = score
        self._temperature = temperature
        self._device = choose_device(settings.device)
        self._use_threads()
        self.model = self._load(policy_dir)
        self._reference = self._load(policy_dir).requires_grad_(False) if settings.loss.kl_weight else None
        self._reach = receptive_field(self.model.config)
        self._generator = np.random.default_rng([seed, 1])
        adam = settings.optimizer
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=adam.lr, betas=(adam.beta1, adam.beta2), weight_decay=adam.weight_decay
        )

    def step(self, groups: Sequence[Sequence[SessionResult]]) -> StepMetrics:
        """Learn from one batch; each inner sequence holds the sessions of one task."""
        started = time.perf_counter()
        self._use_threads()
        lr = learning_rate(self.steps, self.settings.steps, self.settings.optimizer)
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = lr
        credit = assign_credit(groups, self.settings.credit, self._score, version=self.steps)
        batch = flatten(credit, self.settings.loss, self._reach, self.settings.packing.max_tokens)
        norms, values = self._learn(batch) if len(batch) else ([], {})
        self.steps += 1
        return StepMetrics(
            step=self.steps,
            lr=lr,
            updates=len(norms),
            trained_tokens=len(batch),
            gradient_norm=float(np.mean(norms)) if norms else 0.0,
            seconds=time.perf_counter() - started,
            credit=credit,
            values=values,
        )

    def save_policy(self, directory: Path) -> None:
        """Write the present weights as a model directory; existing weights are replaced in one move."""
        save_model(self.model, self.policy_dir, directory)

    def save(self, directory: Path, extra: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint, complete or not at all. `extra` is kept with it as JSON."""
        with checkpoint.writing(directory) as part:
            self.save_policy(part / checkpoint.POLICY)
            torch.save(self._optimizer.state_dict(), part / checkpoint.OPTIMIZER)
            generator = self._generator.bit_generator.state
            checkpoint.write_state(part, {"steps": self.steps, "generator": generator, "extra": extra or {}})

    def restore(self, directory: Path) -> dict[str, Any]:
        """Continue from a checkpoint, on the very same curve; returns its `extra`."""
        state = checkpoint.read_state(directory)
        weights = self._load(directory / checkpoint.POLICY).state_dict()
        try:
            self.model.load_state_dict(weights)
            self._optimizer.load_state_dict(checkpoint.read_optimizer(directory, self._device))
            self._generator.bit_generator.state = state["generator"]
            self.steps = int(state["steps"])
            extra: dict[str, Any] = state["extra"]
        except (RuntimeError, ValueError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise TrainingError(f"checkpoint {directory} is not one of this policy: {reason}") from error
        return extra

    def _load(self, directory: Path) -> PreTrainedModel:
        return load_model(directory, device=self._device, attention=self.settings.attention)

    def _use_threads(self) -> None:
        # The count belongs to the calling thread, and a step may run in another one than the construction.
        if self.settings.threads is not None:
            torch.set_num_threads(self.settings.threads)

    def _learn(self, batch: StepBatch) -> tuple[list[float], dict[str, float]]:
        """All passes over a batch: the gradient norm of each update, and what was measured."""
        tokens = self._on_device(batch.tokens)
        several = self.settings.minibatches > 1
        if several or self._reference is not None:
            tokens = self._recompute(batch, tokens)
        norms, passes = [], []
        for epoch in range(self.settings.epochs):
            measured: list[dict[str, float]] = []
            for pieces in self._split(batch.pieces):
                norm, parts = self._update(self._pack(pieces), tokens, first_pass=epoch == 0 and not several)
                norms.append(norm)
                measured += parts
            passes.append(merge(measured))
        values = {f"{name}_last": value for name, value in passes[-1].items() if name in ("ratio", "approx_kl")}
        return norms, passes[0] | values | {"clip_fraction": float(np.mean([one["clip_fraction"] for one in passes]))}

    def _update(
        self, batches: list[Microbatch], tokens: TokenBatch, *, first_pass: bool
    ) -> tuple[float, list[dict[str, float]]]:
        """One optimiser step. In the first pass over a whole batch the trainer's log-probabilities of before the step
        come out of the forward pass that the gradient needs anyway."""
        self._optimizer.zero_grad(set_to_none=True)
        measured = []
        for microbatch in batches:
            logprobs_N, entropy_N = self._forward(self.model, microbatch)
            if first_pass:
                tokens.proximal_N[microbatch.tokens_N] = logprobs_N.detach()
            chosen = tokens[microbatch.tokens_N]
            loss = policy_loss(logprobs_N, entropy_N, chosen, self.settings.loss) * self.settings.minibatches
            torch.autograd.backward(loss)
            measured.append(measure(logprobs_N, entropy_N, chosen, self.settings.loss))
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.optimizer.max_grad_norm))
        if not math.isfinite(norm):
            raise TrainingError(f"step {self.steps + 1}: gradient norm={norm}; lower trainer.optimizer.lr and resume")
        self._optimizer.step()
        return norm, measured

    def _split(self, pieces: list[list[Segment]]) -> Iterator[list[list[Segment]]]:
        """The examples in random order, in as many nearly equal parts as there are updates to make."""
        order = self._generator.permutation(len(pieces))
        for part in np.array_split(order, self.settings.minibatches):
            if len(part):
                yield [pieces[index] for index in part]

    def _pack(self, pieces: list[list[Segment]]) -> list[Microbatch]:
        packing = self.settings.packing
        return pack(
            list(chain.from_iterable(pieces)),
            row_tokens=packing.row_tokens,
            microbatch_tokens=packing.microbatch_tokens,
            device=self._device,
        )

    @torch.no_grad()
    def _recompute(self, batch: StepBatch, tokens: TokenBatch) -> TokenBatch:
        """The log-probabilities under the weights of before the step, and under the initial ones if they are priced."""
        reference = None if self._reference is None else torch.zeros_like(tokens.proximal_N)
        for microbatch in self._pack(batch.pieces):
            tokens.proximal_N[microbatch.tokens_N] = self._forward(self.model, microbatch)[0]
            if self._reference is not None and reference is not None:
                reference[microbatch.tokens_N] = self._forward(self._reference, microbatch)[0]
        return replace(tokens, reference_N=reference)

    def _forward(self, model: PreTrainedModel, microbatch: Microbatch) -> tuple[torch.Tensor, torch.Tensor]:
        low = self.settings.precision == "bfloat16"
        with torch.autocast(self._device.type, torch.bfloat16) if low else nullcontext():
            weighed = self.settings.loss.entropy_weight > 0
            return token_logprobs(model, microbatch, temperature=self._temperature, entropy_gradient=weighed)

    def _on_device(self, tokens: TokenBatch) -> TokenBatch:
        moved = (tokens.advantages_N, tokens.weights_N, tokens.behaviour_N, tokens.proximal_N)
        return TokenBatch(*(tensor.to(self._device) for tensor in moved))
