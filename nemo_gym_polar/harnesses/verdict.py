# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What any harness's end says, before a harness looks at its own output."""

from __future__ import annotations

from nemo_gym_polar.harnesses.base import HarnessStatus
from nemo_gym_polar.runtimes.base import Exit

Verdict = tuple[HarnessStatus, str]


def common(ended: Exit, turns: int, said: str = "") -> Verdict | None:
    """A verdict that needs no knowledge of the harness, or None. `said` is the harness's own word on what is wrong."""
    if ended.timed_out:
        return "timeout", f"the harness was stopped after {ended.seconds:.0f} s"
    if ended.killed_for:
        return "failed", f"the harness was killed: too much of «{ended.killed_for}»"
    if turns == 0:
        return "failed", f"the harness never got an answer from the model ({said or described(ended)})"
    return None


def by_code(ended: Exit, turns: int) -> Verdict:
    """The verdict on a program whose exit code can be trusted."""
    return common(ended, turns) or (("failed", described(ended)) if ended.code else ("completed", ""))


def described(ended: Exit) -> str:
    """Exit code and the last line of output, for a person."""
    lines = (ended.stderr.strip() or ended.stdout.strip()).decode(errors="replace").splitlines()
    said = f": {lines[-1].strip()[:300]}" if lines else ""
    return f"exit code {ended.code}{said}"
