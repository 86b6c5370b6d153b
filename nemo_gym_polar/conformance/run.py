# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All cases, and running them one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nemo_gym_polar.conformance import chat, generate_content, messages, responses, wire
from nemo_gym_polar.conformance.case import Case, Subject

CASES: tuple[Case, ...] = (*chat.CASES, *responses.CASES, *messages.CASES, *generate_content.CASES, *wire.CASES)


@dataclass(frozen=True, slots=True)
class Outcome:
    dialect: str
    name: str
    ok: bool
    detail: str
    seconds: float


def run_cases(subject: Subject, cases: Iterable[Case] = CASES) -> Iterator[Outcome]:
    """One outcome for each case, as soon as it is known."""
    for case in cases:
        began = time.monotonic()
        ok, detail = _run(case, subject)
        yield Outcome(case.dialect, case.name, ok, detail, round(time.monotonic() - began, 3))


def _run(case: Case, subject: Subject) -> tuple[bool, str]:
    try:
        return True, case.run(subject)
    except Exception as error:  # noqa: BLE001 (whatever a client raises is the finding)
        return False, f"{type(error).__name__}: {error}"[:300]
