# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions of a task that began with another prompt than the others, with the text in which they differ.

The text is read from the traces when it is asked for: nothing more has to be kept for what should never happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.conversations import read_conversations
from nemo_gym_polar.rollouts.first_prompt import difference, readable_rows

SHOWN = 3  # sessions whose text is read


def mismatch_views(task: TaskRecord, records: Sequence[SessionRecord], directory: Path) -> list[dict[str, Any]]:
    """`records` are the task's sessions that count. Reads files."""
    odd = [record for record in records if record.sample in (task.first_prompt_mismatches or ())]
    if not odd:
        return []
    others = [record for record in records if record not in odd and record.first_prompt is not None]
    usual = next((text for record in others if (text := prompt_text(record, directory)) is not None), None)
    return [mismatch_view(record, usual if at < SHOWN else None, directory) for at, record in enumerate(odd)]


def mismatch_view(record: SessionRecord, usual: str | None, directory: Path) -> dict[str, Any]:
    own = None if usual is None else prompt_text(record, directory)
    theirs, different = (None, None) if own is None or usual is None else difference(usual, own)
    return {"sample": record.sample, "session_id": record.session_id, "theirs": theirs, "own": different}


def prompt_text(record: SessionRecord, directory: Path) -> str | None:
    """What a session was asked first; None if that is not kept."""
    if record.result_path is None:
        return None
    try:
        with (directory / record.result_path).open("rb") as file:
            line: Mapping[str, Any] = orjson.loads(file.readline())
        (said,) = read_conversations([line["conversation"]])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return readable_rows(said.prompt, said.tools)
