# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Loads a policy and listens: the part of the server that needs torch."""

from __future__ import annotations

import socket
from argparse import Namespace
from pathlib import Path

import torch
import uvicorn

from nemo_gym_polar.policy.api.app import create_app
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.decoder import Decoder
from nemo_gym_polar.policy.engine import Engine
from nemo_gym_polar.policy.scheduler import Scheduler
from nemo_gym_polar.policy.shape import ConfigError, DecoderShape
from nemo_gym_polar.policy.weights import WeightsError, read_weights

_SECONDS_TO_FINISH = 2


class StartupError(Exception):
    """The server can't start; the message says what to change."""


def serve(options: Namespace) -> None:
    """Serve until SIGTERM or SIGINT. Prints one line, "listening on ...", when requests will be answered."""
    torch.set_num_threads(options.threads)
    listener, address = _listen(options)
    try:
        service = load_service(options)
    except (ConfigError, WeightsError, FileNotFoundError) as error:
        raise StartupError(str(error)) from error
    app = create_app(service, on_ready=lambda: print(f"listening on {address}", flush=True))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        timeout_keep_alive=600,
    )
    uvicorn.Server(config).run(sockets=[listener])
    if options.uds is not None:
        options.uds.unlink(missing_ok=True)


def load_service(options: Namespace) -> PolicyService:
    """Everything but the listening socket."""
    shape = DecoderShape.load(options.model)
    decoder = Decoder(shape, device=options.device, dtype=getattr(torch, options.dtype))
    decoder.load(read_weights(options.model))
    scheduler = Scheduler(
        decoder, rows=options.max_num_seqs, chunk=options.prefill_chunk, version=options.weight_version
    )
    return PolicyService.load(
        Engine(scheduler), shape, options.model, name=options.served_model_name, limit=options.max_model_len
    )


def _listen(options: Namespace) -> tuple[socket.socket, str]:
    """A listening socket, and its address; connections made before the server is up wait in its queue."""
    if options.uds is not None:
        return _listen_on_path(options.uds), f"unix:{options.uds}"
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        raise StartupError(
            f"can't listen on {options.host}:{options.port}: {error.strerror}; give a free port"
        ) from error
    listener.listen(1024)
    host = f"[{options.host}]" if family == socket.AF_INET6 else options.host
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def _listen_on_path(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise StartupError(f"can't listen on {path}: {error.strerror}; remove it if no server uses it") from error
    listener.listen(1024)
    return listener
