# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Do traces say what the forest says? An independent check that shares no code with the builders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from nemo_gym_polar.forest.audit_trace import audit_sharing, audit_trace
from nemo_gym_polar.forest.digests import turn_digest
from nemo_gym_polar.forest.findings import Breach, Finding
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Status, Turn

__all__ = ["Breach", "Finding", "audit", "audit_account", "audit_traces", "audit_turns"]


def audit(store: TurnStore, traces: Sequence[Trace], dropped: Mapping[str, int]) -> list[Finding]:
    """All breaches in a build of `store`; empty for a sound one. `dropped` counts sampled tokens by cause."""
    return [*audit_turns(store), *audit_traces(store, traces), *audit_account(store, traces, dropped)]


def audit_turns(store: TurnStore) -> Iterator[Finding]:
    """Breaches in the turns themselves."""
    for turn in store.turns:
        above = store[turn.parent] if turn.parent is not None and turn.parent < turn.index else None
        if (above is None) != (turn.parent is None) or turn.shared > (above.length if above else 0):
            yield Finding(Breach.STRUCTURE, f"turn {turn.index} shares more with its parent than there is", turn.index)
        if turn.edge is Edge.CONTINUE and turn.has_tokens and (above is None or turn.shared != above.length):
            yield Finding(Breach.STRUCTURE, f"turn {turn.index} continues only part of its parent", turn.index)
        if len(turn.sampled) != len(turn.logprobs):
            counts = f"{len(turn.sampled)} sampled tokens but {len(turn.logprobs)} log-probabilities"
            yield Finding(Breach.LENGTH, f"turn {turn.index} has {counts}", turn.index)
        if turn_digest(_digest(above), turn.shared, turn.delta, turn.sampled, turn.logprobs) != turn.digest:
            yield Finding(Breach.DIGEST, f"turn {turn.index} does not have the tokens that were recorded", turn.index)


def audit_traces(store: TurnStore, traces: Sequence[Trace], *, whole: bool = True) -> Iterator[Finding]:
    """Breaches in traces against the turns that they claim; without `whole`, some of the build's are missing."""
    yield from _owners(store, traces)
    for trace in traces:
        yield from audit_trace(store, trace)
        yield from audit_sharing(traces, trace, whole=whole)


def _digest(above: Turn | None) -> bytes:
    return above.digest if above else b""


def _owners(store: TurnStore, traces: Sequence[Trace]) -> Iterator[Finding]:
    owners = Counter(index for trace in traces for index in trace.turns)
    for index, times in owners.items():
        if times > 1:
            yield Finding(Breach.OWNER, f"turn {index} is owned by {times} traces", index)
        if 0 <= index < len(store) and not _trainable(store[index]):
            why = ", ".join(sorted(store[index].flags)) or store[index].status
            yield Finding(Breach.OWNER, f"turn {index} is {why}, yet owned", index)


def audit_account(store: TurnStore, traces: Iterable[Trace], dropped: Mapping[str, int]) -> Iterator[Finding]:
    """Whether all sampled tokens are trained on or counted; the turns that nobody owns are named if not."""
    sampled = sum(len(turn.sampled) for turn in store.turns)
    trained, left_out = sum(trace.trained_tokens for trace in traces), sum(dropped.values())
    if trained + left_out != sampled:
        counts = f"{sampled} sampled, but {trained} trained on and {left_out} dropped"
        yield Finding(Breach.ACCOUNT, counts + _unowned(store, traces))


def _unowned(store: TurnStore, traces: Iterable[Trace]) -> str:
    owned = {index for trace in traces for index in trace.turns}
    lost = [str(turn.index) for turn in store.turns if turn.index not in owned and _trainable(turn)]
    return f"; kept, but in no trace: turn {', '.join(lost)}" if lost else ""


def _trainable(turn: Turn) -> bool:
    return turn.status is Status.KEPT and not turn.flags
