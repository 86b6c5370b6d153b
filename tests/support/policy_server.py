# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded policy on a free port, for tests that have no event loop of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.policy.warm_start import WarmStartSettings, ensure_policy

NAME = "policy"
LISTENING = "listening on "


@dataclass(frozen=True, slots=True)
class PolicyServer:
    """`directory` holds the weights and the tokenizer, `name` is what requests ask for."""

    url: str
    directory: Path
    name: str = NAME


@contextlib.contextmanager
def policy_server(log: Path) -> Iterator[PolicyServer]:
    """The warm-started policy, as long as the block lasts."""
    directory = ensure_policy(WarmStartSettings())
    command = [sys.executable, "-m", "nemo_gym_polar.policy.server", "--model", str(directory), "--port", "0"]
    options = ["--served-model-name", NAME, "--die-with", str(os.getpid())]
    with (
        log.open("wb") as errors,
        subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(LISTENING), log.read_text(errors="replace")[-2000:]
            yield PolicyServer(line.removeprefix(LISTENING).strip(), directory)
        finally:
            process.terminate()
