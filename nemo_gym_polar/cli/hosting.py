# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the service's process out of a file, overrides, and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import ValidationError

from nemo_gym_polar.cli import paths
from nemo_gym_polar.cli.compose import compose, unknown_key
from nemo_gym_polar.cli.connection import require_http
from nemo_gym_polar.cli.errors import UsageError, invalid_fields

if TYPE_CHECKING:
    from nemo_gym_polar.rollouts.hosting.settings import HostSettings

# Where an option of `polar serve` belongs in the settings; «api» is where it listens.
PLACES: Mapping[str, str] = {
    "engine": "engine.urls",
    "model": "engine.model",
    "engine_kind": "engine.kind",
    "mode": "engine.mode",
    "logprobs": "engine.logprobs",
    "tokenizer": "engine.tokenizer",
    "renderer": "engine.renderer",
    "renderer_options": "engine.renderer_options",
    "history": "engine.history",
    "api_key": "engine.api_key",
    "helpers": "engine.helpers",
    "host": "api.host",
    "port": "api.port",
    "public_url": "node.public_url",
    "admin_token": "token",
    "temperature": "gateway.sampling.temperature",
    "top_p": "gateway.sampling.top_p",
    "top_k": "gateway.sampling.top_k",
    "max_tokens": "gateway.sampling.max_tokens",
    "context_tokens": "gateway.context_tokens",
    "when_exhausted": "gateway.when_exhausted",
    "directory": "directory",
    "store": "store",
    "join": "join",
    "ray": "ray.address",
    "node_id": "node.node_id",
    "drain_seconds": "node.shutdown_grace",
}
FOR_NODES: Mapping[str, str] = {"host": "node.host", "port": "node.port"}
ELSEWHERE: Mapping[str, str] = {
    "uds": "sandboxes get a socket of their own",
    "journals": "give --directory",
    "traces": "give --directory",
}
CALLBACK_KEY = "POLAR_CALLBACK_KEY"
OWN = "local"  # what the node in the service's process is called unless told otherwise


def serve(config: str | None, overrides: Sequence[str], options: Mapping[str, Any]) -> None:
    """Run the service, or the node, until it is told to stop."""
    settings = read_settings(config, overrides, options)
    # Not at the top: the other commands should not wait for a web framework and a database.
    import uvloop

    from nemo_gym_polar.gateway import logs
    from nemo_gym_polar.rollouts.hosting.node import serve_node
    from nemo_gym_polar.rollouts.hosting.service import serve_service

    logs.configure(options.get("log_format", "text"), options.get("log_level", "warning"))
    uvloop.run((serve_node if settings.join else serve_service)(settings, typer.echo))


def read_settings(config: str | None, overrides: Sequence[str], options: Mapping[str, Any]) -> HostSettings:
    """`options` are those that were given. Raises `UsageError` naming what is wrong."""
    from nemo_gym_polar.rollouts.hosting.settings import HostSettings

    composed = compose(find(config), overrides)
    values = composed.values
    places = {**PLACES, **(FOR_NODES if options.get("join") or values.get("join") else {})}
    for name, value in options.items():
        if name in ELSEWHERE:
            raise UsageError(f"--{name} is for a gateway by itself; {ELSEWHERE[name]}")
        if name in places:
            put(values, places[name], value)
    require_http("join", *([values["join"]] if values.get("join") else []))
    if values.get("join") and (options.get("service") or options.get("ray")):
        raise UsageError("--join is for a node: start it and the service with a command each")
    if key := os.environ.get(CALLBACK_KEY):
        put(values, "callbacks.key", key)
    if values.get("engine", {}).get("model"):
        values.setdefault("gateway", {}).setdefault("models", [values["engine"]["model"]])
    try:
        settings = HostSettings.model_validate(values)
    except ValidationError as error:
        strange = [".".join(map(str, one["loc"])) for one in error.errors() if one["type"] == "extra_forbidden"]
        unknown = [unknown_key(composed, key) for key in strange]
        raise UsageError("; ".join(unknown or invalid_fields(error))) from error
    if settings.join and settings.node.node_id == OWN:
        raise UsageError(f"node.node_id={OWN!r} is the service's own node; name this one with --node-id")
    return settings


def find(config: str | None) -> Path:
    """A file, or the settings that the package ships."""
    path = Path(config) if config else paths.conf() / "serve.yaml"
    if not path.is_file():
        raise UsageError(f"--config: there is no file {config}")
    return path.resolve()


def put(values: dict[str, Any], place: str, value: Any) -> None:
    *above, last = place.split(".")
    for name in above:
        below = values.get(name)
        values[name] = below if isinstance(below, dict) else {}
        values = values[name]
    values[last] = str(value) if isinstance(value, Path) else value
