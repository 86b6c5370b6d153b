# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be relied on when this model's conversations are continued, tried out before the first of them comes.

Each kind of step is taken once as the gateway takes it: the model's answer is spelled as its format spells it, read as
the gateway reads it, and the next prompt is both appended and rendered whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import count
from typing import Any, Literal

import numpy as np
import orjson

from nemo_gym_polar.chat import Conversation, Message
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.families import History
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.transitions import Transition, transitions
from nemo_gym_polar.tokens import Int32

Verdict = Literal["stable", "kept", "differs", "forks", "unsupported"]

_CUT = 3  # tokens before the end at which an answer is cut off


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token at which a prompt that is rendered whole parts from the known tokens; None past an end."""

    position: int
    known: int | None
    rendered: int | None
    known_text: str
    rendered_text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of step.

    `verdict` is `stable`: the whole, rendered anew, begins with the known tokens and ends with what is appended.
    `kept`: appending keeps tokens that rendering the whole would write otherwise, and adds what it would add.
    `differs`: it adds other tokens, too. `forks`: nothing can be appended, the prompt is rendered whole and parts from
    the known tokens. `unsupported`: the format can't express it, `reason` says why. `appends` is whether the renderer
    can add to the known tokens without a look at the whole; `difference` is the first token where the two ways part.
    """

    name: str
    verdict: Verdict
    appends: bool = False
    difference: Difference | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """Hashes are SHA-256 in hex; `template` is None where the model's directory has no chat template."""

    tokenizer: str
    template: str | None
    renderer: str
    options: Mapping[str, Any]
    history: History
    steps: tuple[Step, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def line(self) -> str:
        """One line of JSON: what it is of, and the names of the steps by verdict."""
        made = {name: value for name, value in asdict(self).items() if name != "steps"}
        verdicts: dict[str, list[str]] = {}
        for step in self.steps:
            verdicts.setdefault(step.verdict, []).append(step.name)
        return orjson.dumps({**made, **verdicts}).decode()


def certify(rendering: Rendering) -> Certificate:
    """Takes every step once; some milliseconds, and the time to hash the tokenizer."""
    source, template = rendering.source, rendering.tokenizer.chat_template
    return Certificate(
        tokenizer=sha256((source.directory / "tokenizer.json").read_bytes()).hexdigest(),
        template=None if template is None else sha256(template.encode()).hexdigest(),
        renderer=source.renderer,
        options=source.options,
        history=source.history,
        steps=tuple(_step(rendering, transition) for transition in transitions()),
    )


def _step(rendering: Rendering, step: Transition) -> Step:
    try:
        return _taken(rendering, step)
    except (EngineError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return Step(step.name, "unsupported", reason=str(error) or type(error).__name__)


def _taken(rendering: Rendering, step: Transition) -> Step:
    asked, tools = step.asked, step.asked.tools
    prompt = rendering.render(asked)
    sampled = _sampled(rendering, step, prompt)
    known = np.concatenate((prompt, sampled))
    answer = rendering.parse(prompt, sampled, tools, allow_calls=True, mint=_mint())
    if not step.new:
        whole = rendering.render(Conversation((*asked.messages, answer), tools), open_answer=False)
        length = min(len(known), len(whole))  # the end of an answer may be the opening of what comes next
        return _judge(rendering, step.name, known[:length], whole[:length], known[:0])
    added = rendering.extend(prompt, sampled, step.new, tools)
    return _judge(rendering, step.name, known, rendering.render(_after(asked, answer, step.new)), added)


def _after(asked: Conversation, answer: Message, new: tuple[Message, ...]) -> Conversation:
    return Conversation((*asked.messages, answer, *new), asked.tools)


def _sampled(rendering: Rendering, step: Transition, prompt: Int32) -> Int32:
    """The answer as the model would say it: what the format has after the prompt, up to the token that ends it."""
    whole = rendering.render(Conversation((*step.asked.messages, step.answer), step.asked.tools), open_answer=False)
    said, end = _until_stop(rendering, _said(rendering, prompt, whole))
    if not len(end):
        end = _next_stop(rendering, step, whole)
    if step.ending == "empty":
        return end
    return said[:-_CUT] if step.ending == "cut" else np.concatenate((said, end))


def _next_stop(rendering: Rendering, step: Transition, whole: Int32) -> Int32:
    """The token that ends the answer in formats that end it by who speaks next."""
    after = rendering.render(_after(step.asked, step.answer, step.new or step.asked.messages[1:2]))
    _, end = _until_stop(rendering, after[_shared(whole, after) :])
    return end if len(end) else np.array(rendering.stop_token_ids[:1], np.int32)


def _until_stop(rendering: Rendering, ids: Int32) -> tuple[Int32, Int32]:
    """What comes before the first stop token, and that token; it is empty where there is none."""
    stops = np.flatnonzero(np.isin(ids, rendering.stop_token_ids))
    at = int(stops[0]) if len(stops) else len(ids)
    return ids[:at], ids[at : at + 1]


def _said(rendering: Rendering, prompt: Int32, whole: Int32) -> Int32:
    """What `whole` says after `prompt`; where a history is opened otherwise than an answer, by its text."""
    shared = _shared(prompt, whole)
    if shared == len(prompt):
        return whole[shared:]
    before, text = (rendering.tokenizer.decode(ids[shared:].tolist()) for ids in (prompt, whole))
    if text.startswith(before):
        return np.array(rendering.tokenizer.encode(text[len(before) :]), np.int32)
    return whole[shared:]


def _judge(rendering: Rendering, name: str, known: Int32, whole: Int32, added: Int32 | None) -> Step:
    appended = known if added is None else np.concatenate((known, added))
    shared = _shared(appended, whole)
    if shared == len(appended) and (added is None or shared == len(whole)):
        return Step(name, "stable", added is not None)
    difference = _difference(rendering, appended, whole, shared)
    if added is None:
        return Step(name, "forks", False, difference)
    same = len(added) <= len(whole) and np.array_equal(whole[len(whole) - len(added) :], added)
    return Step(name, "kept" if same else "differs", True, difference)


def _difference(rendering: Rendering, known: Int32, whole: Int32, position: int) -> Difference:
    before, after = (int(ids[position]) if position < len(ids) else None for ids in (known, whole))
    texts = ["" if token is None else rendering.tokenizer.decode([token]) for token in (before, after)]
    return Difference(position, before, after, *texts)


def _shared(first: Int32, second: Int32) -> int:
    length = min(len(first), len(second))
    different = np.flatnonzero(first[:length] != second[:length])
    return int(different[0]) if len(different) else length


def _mint() -> Any:
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"
