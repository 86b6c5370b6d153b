# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an audit says of one session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.cli.logprob_audit import described
from nemo_gym_polar.cli.trace_files import trace_files
from nemo_gym_polar.forest.audit import audit, audit_account, audit_traces
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.differences import Differences
from nemo_gym_polar.forest.errors import BuilderError, JournalFormatError
from nemo_gym_polar.forest.findings import Finding
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import Recovered
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.recorded import RecordedSession, read_session


@dataclass(slots=True)
class Report:
    """`error` is why a session could not be audited, `checked` counts its traces by where they come from.

    `note` is what a person should know though it breaks nothing, `tolerance` the largest difference allowed, in nats.
    """

    journal: Path
    session: str
    turns: int = 0
    error: str | None = None
    note: str | None = None
    trained: int = 0
    checked: dict[str, int] = field(default_factory=dict)
    breaches: list[tuple[str, Finding]] = field(default_factory=list)
    differences: Differences | None = None
    tolerance: float | None = None

    @property
    def sound(self) -> bool:
        return not (self.error or self.breaches or self.disagreement)

    @property
    def disagreement(self) -> str | None:
        """What the comparison with the engine found wrong, if it was made."""
        if self.differences is None:
            return None
        largest, left_out = self.differences.largest, self.differences.left_out
        if self.tolerance is not None and largest > self.tolerance:
            return f"a log-probability differs by {largest:.3g} nats, more than {self.tolerance:g}"
        if left_out and not self.differences.spreads():
            causes = ", ".join(f"{tokens} of {cause}" for cause, tokens in sorted(left_out.items()))
            return f"no token could be compared with the engine: {causes}; --any-version does not look at weights"
        return None

    def describe(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "journal": str(self.journal),
            "sound": self.sound,
            "error": self.error,
            "note": self.note,
            "turns": self.turns,
            "trained_tokens": self.trained,
            "traces": self.checked,
            "breaches": [{"in": source, **_finding(finding)} for source, finding in self.breaches],
            "logprobs": self.differences and {**described(self.differences), "disagreement": self.disagreement},
        }


def examine(journal: Path, builder: str) -> tuple[Report, Forest | None]:
    """The audit of one session without an engine, and its forest if it could be read.

    CommandError for a builder that there is not.
    """
    try:
        session = _recorded(journal)
        return _examine(session, builder), session.forest
    except BuilderError as error:
        raise CommandError(f"{journal}: {error}") from error
    except (CommandError, JournalFormatError, RolloutError, OSError) as error:
        return Report(journal, journal.stem, error=str(error)), None


def _examine(session: RecordedSession, builder: str) -> Report:
    forest = session.forest
    built = build(forest, builder)
    report = Report(session.journal, forest.session_id, len(forest))
    report.note, report.trained = _note(session.recovered), built.trained_tokens
    _add(report, f"built by {builder}", len(built.traces), audit(forest, built.traces, built.dropped))
    dropped = session.result.get("dropped", built.dropped)
    for file in trace_files(session.journal, forest.session_id):
        findings = [*file.damage, *audit_traces(forest, file.traces, whole=file.whole)]
        findings += audit_account(forest, file.traces, dropped) if file.whole else ()
        _add(report, file.path.name, len(file.traces), findings)
    return report


def _add(report: Report, source: str, traces: int, findings: Iterable[Finding]) -> None:
    report.checked[source] = traces
    report.breaches += [(source, finding) for finding in findings]


def _recorded(journal: Path) -> RecordedSession:
    session = read_session(journal)
    recovered = session.recovered
    if recovered.damage is not None:
        raise CommandError(f"{recovered.damage}; the {recovered.damage.turns} turns before it are whole")
    if not recovered.forest.session_id:
        raise CommandError(f"{journal} is half-written: it ends before its first record, so it holds no session")
    return session


def _note(recovered: Recovered) -> str | None:
    if recovered.torn:
        return f"half-written: {recovered.torn} bytes of an unfinished record at its end are not read"
    return None if recovered.closed is not None else "not finished: the session was not closed"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "breach": str(finding.breach),
        "message": finding.message,
        "turn": finding.turn,
        "trace": finding.trace,
    }
