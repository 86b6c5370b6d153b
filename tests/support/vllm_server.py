# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real vLLM on a CPU, as scripts/vllm.sh installs it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

NAME = "tiny"
OPTIONS = (
    *("--max-model-len", "16384", "--max-num-seqs", "16", "--dtype", "float32", "--enforce-eager"),
    *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder", "--enable-scale-out"),
)
_SECONDS_TO_START = 480.0
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",
}


@contextlib.contextmanager
def vllm_server(directory: Path, log: Path) -> Iterator[tuple[str, int]]:
    """Serve `directory`; the address, and the process above all of the server's."""
    python, port = _python(), _free_port()
    # Its three processes live in a process namespace: none of them can outlive this one, whatever ends it.
    sandbox = ("bwrap", "--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc")
    module = ("--tmpfs", "/dev/shm", str(python), "-m", "vllm.entrypoints.openai.api_server")
    served = ("--model", str(directory), "--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port))
    command = [*sandbox, *module, *served, *OPTIONS]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=_environment(python), stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process, log)
            yield url, process.pid
        finally:
            process.kill()


def _python() -> Path:
    place = Path(sys.prefix) / ".polar-vllm"
    assert place.is_file(), "vLLM is not installed; run scripts/vllm.sh"
    return Path(place.read_text().strip())


def _environment(python: Path) -> dict[str, str]:
    """With bytecode: without it each of three processes compiles thousands of files at every start."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | _ENVIRONMENT | {"VLLM_CACHE_ROOT": str(python.parents[1] / "cache")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
            return
        time.sleep(0.25)
    raise TimeoutError(f"vLLM did not start; its log ends with: {log.read_text(errors='replace')[-2000:]}")
