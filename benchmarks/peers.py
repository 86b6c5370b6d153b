# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The peers that we compare with, each in a virtual environment of its own, at pinned and hashed versions.

    python benchmarks/peers.py install [NAME …]
    python benchmarks/peers.py list
    python benchmarks/peers.py lock [NAME …]     # renew the pins, for this platform

The pins are `benchmarks/peers/NAME.txt`. An environment lies in the cache directory, named by the digest of its pins:
new pins make a new one. NeMo Gym needs Python 3.13 (POLAR_PYTHON_313, or the first `python3.13` that is found).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.policy.made_once import cache_root, made_once

PINS = Path(__file__).resolve().parent / "peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """`distribution` is what is compared, at `version`; the rest of its pins is what it needs."""

    name: str
    distribution: str
    version: str
    python: str = "3.12"
    extra: str = ""

    @property
    def requirement(self) -> str:
        return f"{self.distribution}{self.extra}=={self.version}"

    @property
    def pins(self) -> Path:
        return PINS / f"{self.name}.txt"

    @property
    def root(self) -> Path:
        digest = hashlib.sha256(self.pins.read_bytes()).hexdigest()[:12]
        return cache_root() / "peers" / f"{self.name}-{digest}"

    @property
    def installed(self) -> bool:
        return self.root.is_dir()

    def program(self, name: str) -> str:
        """A program in its environment; an error that says what to do if it is not installed."""
        if not self.installed:
            raise SystemExit(
                f"benchmarks: {self.name} is not installed: python benchmarks/peers.py install {self.name}"
            )
        return str(self.root / "bin" / name)

    def install(self) -> Path:
        return made_once(self.root, self._make)

    def _make(self, root: Path) -> None:
        uv = _uv()
        _run(uv, "venv", "--quiet", "--relocatable", "--python", self._interpreter(), str(root))
        pins = ["--require-hashes", "--no-deps", "-r", str(self.pins)]
        _run(uv, "pip", "install", "--quiet", "--python", str(root / "bin" / "python"), *self._target(), *pins)

    def lock(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
            file.write(self.requirement)
            file.flush()
            quiet = ["--quiet", "--no-emit-index-url", "--no-header", "--no-annotate", "--generate-hashes"]
            target = self._target() or ["--python-version", self.python]
            _run(_uv(), "pip", "compile", *quiet, *target, "--output-file", str(self.pins), file.name)

    def _target(self) -> list[str]:
        """Gym 0.7.0 asks for 3.13.14 and runs on any 3.13: uv is told that this is what there is."""
        return ["--python-version", "3.13.14"] if self.python == "3.13" else []

    def _interpreter(self) -> str:
        if self.python == "3.12":
            return sys.executable
        if chosen := os.environ.get("POLAR_PYTHON_313"):
            return chosen
        home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        return next((str(path) for path in sorted(home.glob("versions/3.13*/bin/python3.13"))), self.python)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("rllm", "rllm-model-gateway", "0.1.0"),
        Peer("agentlightning", "agentlightning", "1.0.2"),
        Peer("agentcore", "agentcore-rl-toolkit", "0.2.0", extra="[gateway]"),
        Peer("litellm", "litellm", "1.106.2", extra="[proxy]"),
        Peer("nemo_gym", "nemo-gym", "0.7.0", python="3.13"),
        Peer("sglang_router", "sglang-router", "0.3.2"),
    )
}


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        raise SystemExit("benchmarks: uv is missing: pip install nemo-gym-polar[dev]")
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, env={**os.environ, "UV_NO_CONFIG": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"benchmarks: {' '.join(command[:3])} failed:\n{done.stderr.strip()}")


def chosen(names: list[str]) -> list[Peer]:
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"benchmarks: no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return [PEERS[name] for name in names or PEERS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["install", "list", "lock"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all if none is named")
    arguments = parser.parse_args()
    for peer in chosen(arguments.names):
        if arguments.action == "install":
            peer.install()
        if arguments.action == "lock":
            peer.lock()
        print(f"{peer.distribution} {peer.version}: {peer.root if peer.installed else 'not installed'}")


if __name__ == "__main__":
    main()
