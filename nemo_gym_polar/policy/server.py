# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m nemo_gym_polar.policy.server --model DIR --port N`: serve a policy over vLLM's HTTP API."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from nemo_gym_polar.policy.parent import die_with_parent

_THREADING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    if options.die_with is not None:
        die_with_parent(options.die_with)
    # Threads that spin while they wait slow everything else on the machine down; read when torch is first imported.
    for name, value in _THREADING.items():
        os.environ.setdefault(name, value)
    from nemo_gym_polar.policy.serving import StartupError, serve

    try:
        serve(options)
    except StartupError as error:
        sys.exit(f"policy server: {error}")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nemo_gym_polar.policy.server", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model directory in the Hugging Face layout")
    parser.add_argument("--served-model-name", default="policy", help="the name that requests ask for (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument("--uds", type=Path, help="listen on this Unix socket instead")
    parser.add_argument("--device", default="cpu", help="torch device, such as cpu or cuda (%(default)s)")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="of weights (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; small models want one (%(default)s)")
    parser.add_argument("--max-model-len", type=int, help="longest context in tokens (the model's own)")
    parser.add_argument("--max-num-seqs", type=int, default=32, help="answers sampled at once (%(default)s)")
    parser.add_argument("--prefill-chunk", type=int, default=512, help="prompt tokens read per step (%(default)s)")
    parser.add_argument("--weight-version", default="0", help="version of the weights at the start (%(default)s)")
    parser.add_argument("--die-with", type=int, metavar="PID", help="end when this process, the parent, has ended")
    return parser


def _leave(_: int, __: FrameType | None) -> NoReturn:
    """SIGTERM is a request to end, not a failure."""
    sys.exit(0)


if __name__ == "__main__":
    main()
