# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a run left on disk, compared with what its engines sampled."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from tokenizers import Tokenizer

from nemo_gym_polar.cli.audit_report import examine
from nemo_gym_polar.forest.audit import audit_account, audit_traces
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.results import read_row
from tests.support.rollouts import ASK

ANSWERS = 3
# Like every real agent it asks again when a call fails, and keeps what it was told.
HARNESS = (
    ASK
    + r"""
history='{"role": "system", "content": "Be brief."}'
for n in $(seq """
    + str(ANSWERS)
    + r"""); do
  history="$history, {\"role\": \"user\", \"content\": \"question $n\"}"
  for try in $(seq 60); do
    reply=$(post "{\"model\": \"m\", \"messages\": [$history]}" 2> /dev/null | tail -n 1)
    case $reply in *'"choices"'*) break ;; esac
    sleep 0.5
  done
  said=$(printf %s "$reply" | sed -n 's/.*"content": *"\([^"]*\)".*/\1/p')
  test -n "$said" || exit 1
  echo "$said" >> seen.txt
  echo "saw $said"
  history="$history, {\"role\": \"assistant\", \"content\": \"$said\"}"
done
"""
)
FINAL = ("COMPLETED", "TIMEOUT", "ERROR", "CANCELLED")
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """`directory` is the service's, `log` what the engines wrote. Nodes write below `disks`, or else below it, too."""

    directory: Path
    log: Path
    disks: tuple[Path, ...] = ()

    def found(self, pattern: str) -> list[Path]:
        """Files in the directories of nodes."""
        return [path for disk in self.disks or (self.directory,) for path in disk.glob(f"nodes/*/{pattern}")]

    def rows(self, query: str) -> list[dict[str, Any]]:
        with sqlite3.connect(f"file:{self.directory / 'polar.db'}?mode=ro", uri=True, timeout=10) as database:
            database.row_factory = sqlite3.Row
            found = [dict(row) for row in database.execute(query)]
        database.close()
        return found

    def sessions(self) -> list[dict[str, Any]]:
        return self.rows("select * from sessions")

    def ended(self) -> int:
        return sum(one["current"] and one["status"] in FINAL for one in self.sessions())

    def busy_nodes(self) -> list[tuple[str, int]]:
        """Those with a running session, and their processes."""
        busy = {one["node_id"] for one in self.sessions() if one["current"] and one["status"] == "RUNNING"}
        found = self.rows("select * from nodes")
        return [(one["node_id"], orjson.loads(one["metadata"])["pid"]) for one in found if one["node_id"] in busy]

    def summary(self) -> str:
        sessions = self.sessions()
        counting = Counter(one["status"] for one in sessions if one["current"])
        lost = sum(not one["current"] for one in sessions)
        errors = Counter(one["error"][:60] for one in sessions if one["current"] and one["error"])
        return f"{dict(counting)}; {lost} attempts were lost and made again; {dict(errors)}"

    def journal(self, session_id: str) -> Path | None:
        found = self.found(f"journals/{session_id}.journal")
        assert len(found) <= 1, f"session {session_id} ran on two nodes"
        return found[0] if found else None

    def traces(self, session_id: str) -> list[Trace]:
        path = self.directory / "traces" / f"{session_id}.jsonl"
        return [read_row(orjson.loads(line)) for line in path.read_bytes().splitlines()] if path.exists() else []

    def recorded(self, session_id: str) -> list[Tokens]:
        """The answers in its journal, trained on or masked."""
        journal = self.journal(session_id)
        turns = recover(journal).forest.turns if journal else []
        return [tuple(turn.sampled.tolist()) for turn in turns if turn.has_tokens]

    def saw(self, session_id: str) -> list[str]:
        """What the agent was told, as far as its log could be written."""
        logs = [path.read_text(errors="replace") for path in self.found(f"sessions/{session_id}/*.log")]
        return [line[4:] for log in logs for line in log.splitlines() if line.startswith("saw ")]

    # Checks

    def check(self, tokenizer_directory: Path) -> None:
        tokenizer = Tokenizer.from_file(str(tokenizer_directory / "tokenizer.json"))
        sampled = self.sampled()
        self.check_ends()
        self.check_journals(sampled)
        owners: Counter[Tokens] = Counter()
        for session in self.sessions():
            if session["current"]:
                answers = self.check_session(session, sampled)
                owners.update(answers)
                kept = answers if session["status"] == "COMPLETED" else self.recorded(session["session_id"])
                texts = {tokenizer.decode(list(answer)).strip() for answer in kept}
                assert set(self.saw(session["session_id"])) <= texts, session
        assert owners and max(owners.values()) == 1, "an answer is trained on twice"

    def sampled(self) -> dict[Tokens, Tokens]:
        """Answer → its context. No two answers are the same."""
        found = [orjson.loads(line) for line in self.log.read_bytes().splitlines()]
        answers = {tuple(one["sampled"]): tuple(one["context"]) for one in found}
        assert len(answers) == len(found)
        return answers

    def check_ends(self) -> None:
        """Every sample once: one attempt that counts, with one final status, told once."""
        sessions = self.sessions()
        counting = Counter((one["task_id"], one["sample"]) for one in sessions if one["current"])
        assert set(counting.values()) == {1}
        assert {(one["task_id"], one["sample"]) for one in sessions} == set(counting)
        assert {one["status"] for one in sessions} <= set(FINAL)
        kinds = [f"session.{status.lower()}" for status in FINAL]
        told = Counter(one["session_id"] for one in self.rows("select * from events") if one["kind"] in kinds)
        assert set(told.values()) == {1}
        assert set(told) == {one["session_id"] for one in sessions}

    def check_journals(self, sampled: dict[Tokens, Tokens]) -> None:
        """Also of attempts that were lost: sound, and every turn is what one engine said once."""
        owners: Counter[Tokens] = Counter()
        for path in self.found("journals/*.journal"):
            forest = recover(path).forest
            if not forest.session_id:  # the disk was full, or the node died, before its first record was whole
                assert not len(forest)
                continue
            report, _ = examine(path, "prefix_merging")
            assert report.sound, (report.error, report.breaches)
            for turn in forest.turns:
                if turn.has_tokens:
                    answer = tuple(turn.sampled.tolist())
                    assert tuple(forest.context(turn.index).tolist()) == sampled[answer]
                    owners[answer] += 1
        assert owners and max(owners.values()) == 1, "an answer is in two turns"

    def check_session(self, session: dict[str, Any], sampled: dict[Tokens, Tokens]) -> list[Tokens]:
        """The answers that are trained on in the attempt that counts."""
        name = session["session_id"]
        traces, journal = self.traces(name), self.journal(name)
        answers = []
        for trace in traces:
            for start, end in runs(np.asarray(trace.loss_mask)):
                ids = tuple(np.asarray(trace.token_ids).tolist())
                answers.append(ids[start:end])
                assert ids[:start] == sampled[ids[start:end]]
        if session["status"] == "COMPLETED":
            assert (session["reward"], len(answers)) == (1.0, ANSWERS), session
        if journal is not None and traces:
            forest = recover(journal).forest
            dropped = orjson.loads(session["result"])["dropped"]
            assert not [*audit_traces(forest, traces), *audit_account(forest, traces, dropped)]
        return answers


def runs(mask: np.ndarray[Any, Any]) -> Iterator[tuple[int, int]]:
    """Where the trained tokens of each answer begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
