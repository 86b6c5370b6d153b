# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a whole run, one field for each group of conf/."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from nemo_gym_polar.engines.base import Logprobs
from nemo_gym_polar.engines.families import History
from nemo_gym_polar.engines.settings import USUAL_LOGPROBS
from nemo_gym_polar.gateway import GatewaySettings, SamplingProfile
from nemo_gym_polar.rollouts.settings import PartialRule, RolloutSettings
from nemo_gym_polar.rollouts.task import AgentSpec, BuilderSpec, EvaluatorSpec, RuntimeSpec
from nemo_gym_polar.training.settings import Count, Natural, Positive, Settings, TrainerSettings

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class EnvSettings(Settings):
    """Which tasks are run, how often, and how it is measured whether the policy got better.

    `tasks` is a bundled set by name or the path of a JSONL file. A step runs `samples` sessions of each of `groups`
    tasks; before and after, the same `heldout` held-out tasks (None: all) run `heldout_samples` times each.
    `timeout` bounds a session in seconds; the rest is as in `RolloutSettings`.
    """

    name: str = "polar"
    tasks: str = "touch"
    groups: Count = 8
    samples: Count = 8
    heldout: Natural | None = 32
    heldout_samples: Count = 2
    timeout: Positive = 60.0
    agent_timeout: Positive | None = None
    postrun_grace: Positive = 60.0
    max_turns: Count | None = 4
    max_generated_tokens: Count | None = None
    timeout_runs: PartialRule = PartialRule.TRAIN
    failed_runs: PartialRule = PartialRule.MASK
    builder: str = "prefix_merging"
    builder_config: dict[str, Any] = Field(default_factory=dict)


class ClusterSettings(Settings):
    """How many sessions are at each stage at once; see `RolloutSettings`."""

    name: str = "local"
    init_workers: Count = 2
    ready_buffer: Natural = 2
    run_workers: Count = 4
    postrun_workers: Count = 2


class EvaluatorChoice(Settings):
    """With a `strategy`, this evaluator replaces the one that each task brings."""

    strategy: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)


class PolicySettings(Settings):
    """`model` is a directory to start from. None takes the embedded policy, and makes it first if these settings of its
    warm start (see `policy.warm_start`) are new to this machine."""

    name: str = "embedded"
    model: Path | None = None
    seed: Natural = 0
    size: Literal["tiny", "small", "medium"] = "tiny"
    copy_steps: Count = 150
    copy_batch: Count = 48
    steps: Count = 300
    batch: Count = 12
    lr: Positive = 3e-3
    threads: Count = 2


class EngineSettings(Settings):
    """What samples. Without `url`, the embedded engine is started on `device` with `threads`, for `sequences` at once.

    With `url`, a running engine that sees the run's directory: by `kind` a vLLM that takes weights
    (VLLM_SERVER_DEV_MODE=1), or an SGLang. `model` is the name it serves; `renderer` and its options name the model's
    chat format, `history` what becomes of past thinking. `logprobs` says what the engine's log-probabilities are of, if
    it was started to report others than it does by itself. `port` is the gateway's, 0 a free one.
    `in_flight` says what becomes of answers under way when new weights come.
    """

    name: str = "embedded"
    kind: Literal["embedded", "vllm", "sglang"] = "embedded"
    url: str | None = None
    api_key: SecretStr | None = None
    model: str = "policy"
    renderer: str = "qwen3.5"
    renderer_options: dict[str, Any] = Field(default_factory=lambda: {"enable_thinking": False})
    history: History = "strip"
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    context_tokens: Count = 32768
    logprobs: Logprobs | None = None
    sampling: SamplingProfile = SamplingProfile(max_tokens=96)
    timeout: Positive = 120.0
    in_flight: Literal["wait", "abort", "keep"] = "wait"
    device: str = "cpu"
    threads: Count = 1
    sequences: Count = 32
    startup_seconds: Positive = 180.0

    @model_validator(mode="after")
    def _others_are_running_already(self) -> EngineSettings:
        if self.kind == "sglang" and not self.url:
            raise ValueError("url is not set; an SGLang must be running: name it, such as http://127.0.0.1:30000")
        return self

    @model_validator(mode="after")
    def _reports_what_was_drawn(self) -> EngineSettings:
        if (self.logprobs or USUAL_LOGPROBS[self.kind]) == "raw" and self.sampling.temperature != 1.0:
            raise ValueError(
                f"sampling.temperature={self.sampling.temperature} is not in the log-probabilities that this engine "
                "reports; sample at 1, or start it with --logprobs-mode processed_logprobs and set logprobs=processed"
            )
        return self

    @field_validator("sampling")
    @classmethod
    def _as_the_policy_is(cls, sampling: SamplingProfile) -> SamplingProfile:
        for name, value, needed in (("top_p", sampling.top_p, 1.0), ("top_k", sampling.top_k, -1)):
            if value != needed:
                raise ValueError(f"{name}={value} cuts off part of what the policy would say; training needs {needed}")
        if sampling.temperature == 0:
            raise ValueError("temperature=0 gives every sample of a group the same answer; training needs more")
        return sampling


class TrainSettings(Settings):
    """A run. It is written to `directory`/`name`; without a name, one is made from the tasks, the seed and the time.

    `resume` goes on with the run of this name (true), or with the run or the checkpoint at a path.
    """

    name: Annotated[str, Field(pattern=NAME)] | None = None
    directory: Path = Path("runs")
    seed: Natural = 0
    resume: bool | Path = False
    env: EnvSettings = EnvSettings()
    harness: AgentSpec = AgentSpec()
    runtime: RuntimeSpec = RuntimeSpec()
    engine: EngineSettings = EngineSettings()
    evaluator: EvaluatorChoice = EvaluatorChoice()
    policy: PolicySettings = PolicySettings()
    trainer: TrainerSettings = TrainerSettings()
    cluster: ClusterSettings = ClusterSettings()

    def rollout_settings(self, run: Path) -> RolloutSettings:
        fields = RolloutSettings.model_fields
        given = {**self.cluster.model_dump(), **self.env.model_dump()}
        return RolloutSettings(directory=run, **{name: given[name] for name in fields if name in given})

    def gateway_settings(self, journals: Path) -> GatewaySettings:
        return GatewaySettings(
            journals=journals,
            sampling=self.engine.sampling,
            context_tokens=self.engine.context_tokens,
            models=(self.harness.model_name,),
        )

    @property
    def builder(self) -> BuilderSpec:
        return BuilderSpec(strategy=self.env.builder, config=self.env.builder_config)

    @property
    def own_evaluator(self) -> EvaluatorSpec | None:
        """What replaces the tasks' evaluators, if anything does."""
        if self.evaluator.strategy is None:
            return None
        return EvaluatorSpec(strategy=self.evaluator.strategy, config=self.evaluator.config)
