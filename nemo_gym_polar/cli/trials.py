# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Trials of harnesses, one after the other, with a tokenizer that is made for them in a moment."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemo_gym_polar.cli import doctor
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.harnesses.base import HarnessError
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import chat_template, make_tokenizer, save_tokenizer
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.trial import Finding, Report, try_harness
from nemo_gym_polar.runtimes.local import NoIsolationWarning

VOCABULARY = 2048


def run_trials(names: Sequence[str], settings: Mapping[str, Any], backend: str | None, seconds: float) -> list[Report]:
    """A report for each; `backend` None takes bubblewrap where it works."""
    backend = backend or ("bubblewrap" if doctor.sandbox().ok else "local")
    warnings.simplefilter("ignore", NoIsolationWarning)  # the script is ours
    with tempfile.TemporaryDirectory(prefix="polar-check-") as directory:
        rendering = small_model(Path(directory))
        return asyncio.run(in_turn(names, rendering, settings, backend, seconds))


async def in_turn(
    names: Sequence[str], rendering: Rendering, settings: Mapping[str, Any], backend: str, seconds: float
) -> list[Report]:
    reports = []
    for name in names:
        try:
            report = await try_harness(name, rendering, settings=settings, backend=backend, seconds=seconds)
        except (HarnessError, RolloutError) as error:
            report = Report(name, 0.0, (Finding("installed", False, str(error)),))
        reports.append(report)
    return reports


def small_model(directory: Path) -> Rendering:
    """A chat format with a small vocabulary."""
    save_tokenizer(make_tokenizer([*seed_corpus(500), chat_template()], VOCABULARY), directory)
    return Rendering.load(directory, "qwen3.5", {"enable_thinking": False})
