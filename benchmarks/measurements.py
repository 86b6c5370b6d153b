# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What docs/performance.md is made from: a command for each measurement, which prints JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from processes import ROOT

GRACE_SECONDS = 10.0


class FailedError(Exception):
    """A measurement that gave nothing; says why in one line."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """`small` are the options that show in seconds whether it works, `options` those of the page."""

    part: str
    script: str
    options: tuple[str, ...] = ()
    small: tuple[str, ...] = ()

    def run(self, *, small: bool, minutes: float) -> Any:
        """Its findings. Whatever it started is gone when it takes too long, or is interrupted."""
        options = self.small if small else self.options
        command = [sys.executable, str(ROOT / "benchmarks" / self.script), "--json", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True) as process:
            try:
                printed, _ = process.communicate(timeout=60 * minutes)
            except subprocess.TimeoutExpired:
                raise FailedError(f"took more than {minutes:g} minutes") from None
            finally:
                if process.poll() is None:
                    _end(process)
        if process.returncode:
            raise FailedError(f"ended with {process.returncode}")
        return json.loads(printed)


def _end(process: subprocess.Popen[str]) -> None:
    """The process and its servers: they are one group."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _profile(scenario: str) -> Measurement:
    options = ("--scenario", scenario)
    return Measurement("calls", "call_profile.py", options, (*options, "--calls", "100"))


MEASUREMENTS = {
    "side_by_side": Measurement(
        "calls", "side_by_side.py", small=("--rounds", "1", "--scale", "0.01", "--turns", "10")
    ),
    "finish": Measurement("calls", "finish.py", small=("--turns", "3")),
    "forest": Measurement("calls", "forest.py", small=("--turns", "3")),
    "profile_small": _profile("small"),
    "profile_large": _profile("large"),
    "profile_growing": _profile("growing"),
    "stages": Measurement(
        "rollouts", "rollout_stages.py", ("--scale", "0.1"), ("--sessions", "4", "--places", "2", "--scale", "0.01")
    ),
    "many": Measurement(
        "rollouts",
        "rollout_stages.py",
        ("--many", "1000", "--scale", "0.3"),
        ("--many", "10", "--scale", "0.01"),
    ),
    "nodes": Measurement("rollouts", "stage_model.py", small=("--nodes", "1", "10", "--seconds", "20")),
    "control_plane": Measurement("rollouts", "control_plane.py", small=("--tasks", "2", "--samples", "3")),
    "builders": Measurement("rollouts", "builder_ablation.py", small=("--groups", "1", "--turns", "2", "3")),
}
PARTS = {
    part: [name for name, one in MEASUREMENTS.items() if one.part == part]
    for part in dict.fromkeys(one.part for one in MEASUREMENTS.values())
}


def chosen(names: list[str]) -> list[str]:
    """Measurements by their own names or their part's; all, if none is named."""
    if unknown := [name for name in names if name not in MEASUREMENTS and name not in PARTS]:
        known = ", ".join([*PARTS, *MEASUREMENTS])
        raise FailedError(f"no such measurement: {', '.join(unknown)}; there are {known}")
    named = {one for name in names for one in PARTS.get(name, [name])}
    return [name for name in MEASUREMENTS if name in named or not names]
