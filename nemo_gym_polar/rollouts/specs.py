# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of a task: agent, runtime, evaluator, builder.

Every key of the reference system's TaskRequest is known here. Those that say the same as one of ours are taken over
into it at once (`skills_path` into `settings.skills`), so that the rest of the package knows one name for each thing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Spec(BaseModel):
    """Unknown keys are refused, so that a typo is seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ShellSpec(Spec):
    """The reference system's way to say what the shell harness runs."""

    command: Annotated[str, Field(min_length=1)]
    cwd: str | None = None
    env: dict[str, str] = {}

    def settings(self) -> dict[str, Any]:
        """As settings of our shell harness."""
        command = f"cd {shlex.quote(self.cwd)} || exit\n{self.command}" if self.cwd else self.command
        return {"command": command, "env": self.env} if self.env else {"command": command}


_AGENT_ALIASES = {
    "import_path": {"type": "string", "description": "the same as harness: «package.module:Class»"},
    "mcp_servers": {"type": "array", "items": {"type": "object"}, "description": "the same as settings.mcp_servers"},
    "skills_path": {"type": "string", "description": "the same as settings.skills"},
    "custom_shell": {"type": "object", "description": "for the shell harness: command, cwd, env"},
}


class AgentSpec(Spec):
    """The harness by name or as «package.module:Class», its settings, and what is added to its environment."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema["properties"].update(_AGENT_ALIASES))

    harness: str = "pi"
    model_name: str = "polar-policy"
    settings: dict[str, Any] = {}
    env: dict[str, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _one_name_for_each_thing(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not given.keys() & _AGENT_ALIASES.keys():
            return given
        agent = {key: value for key, value in given.items() if key not in _AGENT_ALIASES}
        aliases = {key: given[key] for key in _AGENT_ALIASES if given.get(key)}
        if path := aliases.pop("import_path", None):
            if agent.get("harness"):
                raise ValueError(f"harness={agent['harness']!r} and import_path={path!r}: give one of them")
            agent["harness"] = path
        return {**agent, "settings": _joined(agent, aliases)} if aliases else agent


def _joined(agent: Mapping[str, Any], aliases: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(agent.get("settings") or {})
    for name, values in _as_settings(agent, aliases).items():
        for key, value in values.items():
            if key in settings:
                raise ValueError(f"{name} and settings.{key} say the same: give one of them")
            settings[key] = value
    return settings


def _as_settings(agent: Mapping[str, Any], aliases: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if "mcp_servers" in aliases:
        found["mcp_servers"] = {"mcp_servers": aliases["mcp_servers"]}
    if "skills_path" in aliases:
        found["skills_path"] = {"skills": aliases["skills_path"]}
    if "custom_shell" in aliases:
        if agent.get("harness") != "shell":
            raise ValueError(f"custom_shell is for harness='shell', not for {agent.get('harness', 'pi')!r}")
        found["custom_shell"] = ShellSpec.model_validate(aliases["custom_shell"]).settings()
    return found


class PrepareAction(Spec):
    """One step that makes a sandbox ready. Uploads take `source`, a path on the node's machine, to `target` inside.

    A command that fails is tried up to `max_attempts` times, `retry_backoff_seconds` apart.
    """

    type: Literal["upload_file", "upload_dir", "exec"]
    source: str | None = None
    target: str | None = None
    command: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 1
    retry_backoff_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> PrepareAction:
        exec_only, upload_only = ["command", "cwd", "env"], ["source", "target"]
        needed, others = (["command"], upload_only) if self.type == "exec" else (upload_only, exec_only)
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f"type={self.type!r} needs {name}")
        for name in others:
            if getattr(self, name) is not None:
                raise ValueError(f"type={self.type!r} takes no {name}; leave it out")
        if self.type != "exec" and (self.max_attempts, self.retry_backoff_seconds) != (1, 0.0):
            raise ValueError(f"type={self.type!r} is not tried again; leave out max_attempts and retry_backoff_seconds")
        return self


class RuntimeSpec(Spec):
    """Where the harness runs. `prepare` makes its sandbox ready, `eval_prepare` (else `prepare`) the evaluator's own.

    `files` are written into the workspace first; `env` is for all that runs inside. Which of the other fields a backend
    knows is its own affair: one that it doesn't know is refused.
    """

    backend: str = "bubblewrap"
    files: dict[str, str] = {}
    settings: dict[str, Any] = {}
    prepare: tuple[PrepareAction, ...] = ()
    eval_prepare: tuple[PrepareAction, ...] | None = None
    env: dict[str, str] = {}
    image: str | None = None
    network: str | None = None
    allow_internet: bool | None = None
    workdir: str | None = None
    cpus: Count | None = None
    memory_mb: Count | None = None
    storage_mb: Count | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    import_path: str | None = None
    kwargs: dict[str, Any] = {}


class EvaluatorSpec(Spec):
    """How the outcome is scored. `refresh_runtime`: in a sandbox of its own, made while the harness runs."""

    strategy: str = "command"
    config: dict[str, Any] = {}
    env: dict[str, str] = {}
    refresh_runtime: bool = False


class BuilderSpec(Spec):
    strategy: str = "prefix_merging"
    config: dict[str, Any] = {}
