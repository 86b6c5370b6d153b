# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI started twice in one session: it summarises nothing but what lies before an instruction."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import PurePosixPath

from nemo_gym_polar.harnesses.base import HarnessContext, Launch
from nemo_gym_polar.harnesses.gemini_cli import GeminiCliHarness
from nemo_gym_polar.harnesses.stdin import fed

SECOND = "Now create bye.txt, too."


class TwoVisits(GeminiCliHarness):
    """The second run resumes the first with another instruction."""

    def launch(self, context: HarnessContext) -> Launch:
        first = super().launch(context)
        home = PurePosixPath(context.home, ".gemini")
        again = fed((*self.command(context, home), "--resume", "latest"), str(home / "again"))
        both = f"{shlex.join(first.argv)} && {shlex.join(again)}"
        return replace(first, argv=("sh", "-c", both), files={**first.files, str(home / "again"): SECOND.encode()})
