# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Directories that are expensive to make and then kept: complete or not there, whoever asks at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_root() -> Path:
    """`POLAR_CACHE_DIR`, else below the user's cache directory."""
    if chosen := os.environ.get("POLAR_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemo-gym-polar"


def made_once(directory: Path, make: Callable[[Path], object]) -> Path:
    """`directory`, filled by `make` if it is not there yet; what `make` raises leaves nothing behind.

    Of several callers, in this process or in others, one makes it and the others wait.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix="unfinished-") as unfinished:
                made = Path(unfinished) / directory.name
                make(made)
                made.rename(directory)
    return directory
