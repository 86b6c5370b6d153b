# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Loads a policy and listens: the part of the server that needs torch."""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

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
_SECONDS_BETWEEN_CALLS = 600
_BACKLOG = 1024


class StartupError(Exception):
    """The server can't start; the message says what to change."""


def serve(options: Namespace) -> None:
    """Serve until SIGTERM or SIGINT. Prints one line, "listening on ...", when requests will be answered."""
    torch.set_num_threads(options.threads)
    with _listening(options) as (listener, address):
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
            timeout_keep_alive=_SECONDS_BETWEEN_CALLS,
        )
        uvicorn.Server(config).run(sockets=[listener])


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


@contextmanager
def _listening(options: Namespace) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket and its address; connections made before the server is up wait in its queue."""
    with socket.socket(_family(options)) as listener:
        place = options.uds or f"{options.host}:{options.port}"
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(str(options.uds) if options.uds else (options.host, options.port))
        except OSError as error:
            remedy = "remove it if no server uses it" if options.uds else "give a free port, or 0"
            raise StartupError(f"can't listen on {place}: {error.strerror}; {remedy}") from error
        listener.listen(_BACKLOG)
        try:
            yield listener, _address(options, listener)
        finally:
            if options.uds is not None:
                options.uds.unlink(missing_ok=True)


def _family(options: Namespace) -> socket.AddressFamily:
    if options.uds is not None:
        return socket.AF_UNIX
    return socket.AF_INET6 if ":" in options.host else socket.AF_INET


def _address(options: Namespace, listener: socket.socket) -> str:
    if options.uds is not None:
        return f"unix:{options.uds}"
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}"
