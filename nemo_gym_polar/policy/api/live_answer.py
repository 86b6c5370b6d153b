# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What of an unfinished answer may be shown already.

Whatever is shown is a beginning of what `read_answer` will say in the end: space around the parts, text that a stop
string may take back, and everything from a tool call on are held until then.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemo_gym_polar.policy.api.answer import Answer
from nemo_gym_polar.policy.api.service import Markers
from nemo_gym_polar.policy.detokenizer import TextStream, Vocabulary


class LiveAnswer:
    """Follows one answer. `reasoning_open` says that the prompt ends inside a think block."""

    def __init__(self, vocabulary: Vocabulary, markers: Markers, *, reasoning_open: bool, held: int = 0) -> None:
        self._vocabulary = vocabulary
        self._think, self._think_end, self._header = markers.think, markers.think_end, markers.turn_start
        self._unclear = (markers.tool_call, markers.turn_end, markers.text_end)
        self._held = held
        self._stream = TextStream(vocabulary, skip_special=False)
        self._texts = {"reasoning": "", "content": ""}
        self._shown = {"reasoning": 0, "content": 0}
        self._part = "reasoning" if reasoning_open else "content"
        self._closed = False
        self._thought = False

    def add(self, tokens: Sequence[int]) -> dict[str, str]:
        """Take the next tokens; the new text of "reasoning" and "content" that is certain by now."""
        for token in tokens:
            self._take(token)
        return {part: new for part in self._texts if (new := self._show(part, self._certain(part)))}

    def close(self, answer: Answer) -> dict[str, str]:
        """What the finished answer says beyond what was shown."""
        final = {"reasoning": answer.reasoning, "content": answer.content}
        return {part: new for part, text in final.items() if (new := self._show(part, text))}

    def _take(self, token: int) -> None:
        if self._closed:
            return
        if token in self._unclear or (token == self._header and not self._texts["content"]):
            self._closed = True
        elif token == self._think and self._part == "reasoning":
            return
        elif token == self._think and not self._thought and not self._flush().strip():
            self._part = "reasoning"
        elif token == self._think_end and self._part == "reasoning":
            self._flush()
            self._part, self._thought = "content", True
        else:
            self._texts[self._part] += self._stream.add(token)

    def _flush(self) -> str:
        """End the text of this part; a character cut in half stays in it."""
        self._texts[self._part] += self._stream.close()
        self._stream = TextStream(self._vocabulary, skip_special=False)
        return self._texts[self._part]

    def _certain(self, part: str) -> str:
        text = self._texts[part].strip()
        return text[: max(0, len(text) - self._held)]

    def _show(self, part: str, text: str) -> str:
        new = text[self._shown[part] :]
        self._shown[part] += len(new)
        return new
