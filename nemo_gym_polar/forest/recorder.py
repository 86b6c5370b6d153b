# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session's memory: its forest and the journal under it, kept in step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from errno import EEXIST
from pathlib import Path
from typing import Any, Self

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import Journal
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.turn import Generation, Status, Turn


class Recorder:
    """What the call path uses: `match` before generating, `record` before the answer ends."""

    def __init__(self, forest: Forest, journal: Journal) -> None:
        self.forest = forest
        self.journal = journal

    @classmethod
    async def open(
        cls, path: Path, session_id: str, committer: Committer, metadata: Mapping[str, Any] | None = None
    ) -> Self:
        """Go on with the session's file if there is one, else begin it."""
        if await asyncio.to_thread(Journal.begun, path):
            journal, forest = await asyncio.to_thread(Journal.resume, path, committer)
            if forest.session_id != session_id:
                raise JournalError(EEXIST, f"the journal is that of session {forest.session_id}", str(path))
            return cls(forest, journal)
        forest = Forest(session_id)
        return cls(forest, await Journal.create(path, forest, committer, metadata))

    def match(self, conversation: Conversation, hints: Mapping[str, str] | None = None) -> Match:
        """Where the conversation belongs, for the engine call and for `record`."""
        return self.forest.match(conversation, hints)

    def peek(self, conversation: Conversation) -> Match | None:
        """What a conversation goes on from, for a question that is no model call; None for a new one."""
        return self.forest.peek(conversation)

    async def record(self, match: Match, generation: Generation) -> Turn:
        """Add a call to the forest and return once it is durable.

        Raises a `TokenError` if the engine's answer can't be trusted, a `JournalError` if the disk refuses; the
        harness must then not get the answer.
        """
        turn = self.forest.append(match, generation)
        try:
            await self.journal.append(turn, self.forest.drain_marks())
        except JournalError:
            self.forest.mark(turn.index, status=Status.FAILED)
            raise
        return turn

    def unseen(self, turn: Turn) -> None:
        """The harness left before its answer was sent. A later request that repeats the answer takes this back."""
        if turn.status is Status.KEPT and not turn.continued:
            self.forest.mark(turn.index, status=Status.UNSEEN)
            self.journal.mark(self.forest.drain_marks())

    async def close(self, outcome: Mapping[str, Any] | None = None) -> None:
        self.journal.mark(self.forest.drain_marks())
        await self.journal.close(outcome)
