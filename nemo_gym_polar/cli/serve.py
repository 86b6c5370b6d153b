# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar serve`: a gateway by itself, in front of any engine."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from nemo_gym_polar.cli import hosting
from nemo_gym_polar.cli.certificate import History
from nemo_gym_polar.cli.connection import require_http
from nemo_gym_polar.cli.errors import UsageError, invalid_fields


class Mode(StrEnum):
    """Who renders prompts and parses answers: the gateway (tokens), the engine (chat; render: exactly)."""

    TOKENS = "tokens"
    CHAT = "chat"
    RENDER = "render"


class Kind(StrEnum):
    """What runs at the engine's URL; the embedded policy speaks vLLM's API."""

    VLLM = "vllm"
    EMBEDDED = "embedded"
    SGLANG = "sglang"
    NEMO_RL = "nemo_rl"
    OPENAI = "openai"


class WhenExhausted(StrEnum):
    """What a harness is told once its session's budget has run out."""

    ERROR = "error"
    ANSWER = "answer"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Logprobs(StrEnum):
    """What an engine's log-probabilities are of."""

    RAW = "raw"
    SCALED = "scaled"
    PROCESSED = "processed"


def serve(
    context: typer.Context,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of a service or node: rollouts.run_workers=8.")
    ] = None,
    engine: Annotated[list[str] | None, typer.Option(help="Base URL of the engine; again for each replica.")] = None,
    model: Annotated[str, typer.Option(help="The model's name at the engine.")] = "polar-policy",
    engine_kind: Annotated[Kind, typer.Option(help="What the engine is (docs/engines.md).")] = Kind.VLLM,
    mode: Annotated[
        Mode | None,
        typer.Option(help="tokens: the gateway renders. chat, render: the engine does. Else as the kind can."),
    ] = None,
    logprobs: Annotated[
        Logprobs | None, typer.Option(help="What the engine reports, if not what its kind does by itself.")
    ] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="Directory with tokenizer.json, for tokens mode.")] = None,
    renderer: Annotated[str, typer.Option(help="The model's chat format, for tokens mode.")] = "qwen3.5",
    renderer_options: Annotated[str, typer.Option(help="Its options as JSON: '{\"enable_thinking\": false}'.")] = "{}",
    history: Annotated[
        History | None, typer.Option(help="keep past thinking in the context, or strip it as the template does.")
    ] = None,
    api_key: Annotated[str | None, typer.Option(envvar="POLAR_ENGINE_KEY", help="The engine's API key.")] = None,
    helpers: Annotated[
        str,
        typer.Option(
            envvar="POLAR_HELPERS",
            help='Frozen models by alias, as JSON: \'{"fast": {"url": "…/v1", "model": "…", "api_key": "…"}}\'.',
        ),
    ] = "{}",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65535)] = 8399,
    uds: Annotated[Path | None, typer.Option(help="A Unix socket to listen on as well.")] = None,
    public_url: Annotated[str | None, typer.Option(help="Where harnesses reach the gateway, if elsewhere.")] = None,
    admin_token: Annotated[
        str | None,
        typer.Option(
            envvar=["POLAR_ADMIN_TOKEN", "POLAR_CONTROL_TOKEN", "POLAR_CONTROL_PLANE_TOKEN"],
            help="Make and finish sessions over HTTP, or use the service, with this bearer token.",
        ),
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="What training samples with; replaces the harness's.", min=0)
    ] = 1.0,
    top_p: Annotated[float, typer.Option(help="Likewise.", max=1)] = 1.0,
    top_k: Annotated[int, typer.Option(help="Likewise; -1 for all.")] = -1,
    max_tokens: Annotated[int | None, typer.Option(help="The most tokens in one answer.", min=1)] = None,
    context_tokens: Annotated[int | None, typer.Option(help="What the model can read, answer included.", min=1)] = None,
    journals: Annotated[Path, typer.Option(help="Directory of the sessions' journals.")] = Path("polar/journals"),
    traces: Annotated[Path, typer.Option(help="Directory for the traces of finished sessions.")] = Path("polar/traces"),
    when_exhausted: Annotated[
        WhenExhausted, typer.Option(help="What a harness gets that is over its budget: an error, or a last answer.")
    ] = WhenExhausted.ERROR,
    commit_window: Annotated[
        float | None, typer.Option(help="Seconds that a journal's commit waits for others to share a sync.", min=0)
    ] = None,
    drain_seconds: Annotated[
        float, typer.Option(help="After a signal, how long calls in flight may go on.", min=0)
    ] = 30,
    log_format: Annotated[LogFormat, typer.Option(help="Log lines for eyes or for programs.")] = LogFormat.TEXT,
    tracing: Annotated[bool, typer.Option("--tracing", help="Send spans by OTLP; needs the extra otel.")] = False,
    log_level: Annotated[LogLevel, typer.Option(help="The least that is logged.")] = LogLevel.WARNING,
    service: Annotated[
        bool, typer.Option("--service", help="Run the rollout service, with a node of its own if there is an engine.")
    ] = False,
    join: Annotated[str | None, typer.Option(help="Run a node of the service at this address.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Run the service with a node on every machine of this Ray cluster: HOST:PORT, or auto."),
    ] = None,
    config: Annotated[str | None, typer.Option(help="The service's or node's settings: a YAML file.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Where a service or node keeps what it has.")] = None,
    store: Annotated[str | None, typer.Option(help="The service's database, if not SQLite in its directory.")] = None,
    node_id: Annotated[str | None, typer.Option(help="The node's name.")] = None,
) -> None:
    """Record what harnesses do with an engine, or run the rollout service.

    By itself this is a gateway. Without an admin token there is one session; its base URL and API key are printed,
    Ctrl-C ends it and writes its traces. With one, POST /sessions makes sessions.

    With --service, --join, --ray or --config it is the rollout service, or a node of it (docs/rollout-service.md).
    """
    require_http("--engine", *(engine or ()))
    if service or join or ray or config:
        return hosting.serve(config, overrides or [], given(context))
    if overrides or directory or store or node_id:
        raise UsageError("settings, --directory, --store and --node-id are a service's: give --service as well")
    if not engine:
        raise UsageError("--engine is missing: give the engine's base URL")
    # Not at the top: the other commands should not wait for a web framework.
    from nemo_gym_polar.gateway.standalone import ServeSettings, run_gateway

    asked = {
        "engine": _given(
            urls=engine,
            model=model,
            kind=engine_kind,
            mode=mode,
            logprobs=logprobs,
            helpers=_json("--helpers", helpers),
            tokenizer=tokenizer and str(tokenizer),
            renderer=renderer,
            renderer_options=_json("--renderer-options", renderer_options),
            history=history,
            api_key=api_key,
        ),
        "gateway": _given(
            journals=journals,
            commit_window=commit_window,
            models=[model],
            sampling=_given(temperature=temperature, top_p=top_p, top_k=top_k, max_tokens=max_tokens),
            context_tokens=context_tokens,
            when_exhausted=when_exhausted,
            tracing=tracing,
        ),
        **_given(traces=traces, host=host, port=port, uds=uds, admin_token=admin_token, public_url=public_url),
        **_given(drain_seconds=drain_seconds, log_format=log_format, log_level=log_level),
    }
    try:
        run_gateway(ServeSettings.model_validate(asked), say=typer.echo)
    except ValidationError as error:
        raise UsageError("; ".join(invalid_fields(error))) from error
    except ValueError as error:
        raise UsageError(str(error)) from error


def given(context: typer.Context) -> dict[str, Any]:
    """The options that were given, on the command line or in the environment."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    asked = {name for name, source in sources.items() if source and source.name in ("COMMANDLINE", "ENVIRONMENT")}
    values = {name: value for name, value in context.params.items() if name in asked}
    for name, option in (("renderer_options", "--renderer-options"), ("helpers", "--helpers")):
        if name in values:
            values[name] = _json(option, values[name])
    return values


def _json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option}: {text!r} is not JSON: {error}") from error


def _given(**options: Any) -> dict[str, Any]:
    """What was not asked for keeps its default."""
    return {name: value for name, value in options.items() if value is not None}
