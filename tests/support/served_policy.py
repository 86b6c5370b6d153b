# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The policy server on a thread of the test process: real HTTP, without waiting for another process to import torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from nemo_gym_polar.policy.api.app import create_app
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.server import parser
from nemo_gym_polar.policy.serving import load_service


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[tuple[str, PolicyService]]:
    """Serve `directory`; the address, and the service behind it."""
    service = load_service(parser().parse_args(["--model", str(directory), *options]))
    ready = threading.Event()
    config = uvicorn.Config(
        create_app(service, on_ready=ready.set), port=0, log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    with config.bind_socket() as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            if not ready.wait(30):
                raise TimeoutError("the policy server did not start")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", service
        finally:
            server.should_exit = True
            thread.join(30)
