# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Journal files: whole, torn at any byte, damaged at any byte, foreign, newer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.audit import audit, audit_turns
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.errors import CorruptJournalError, JournalError, JournalFormatError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.framing import MAGIC, PREAMBLE, Kind, frame
from nemo_gym_polar.forest.journal import Journal, parse_journal, read_journal, recover
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Edge, Generation, Status
from tests.forest.world import SHELL, World, assistant, call, result, system, user


def session(turns: int = 5) -> World:
    world = World()
    history = [system("You are an agent."), user("Fix the bug.")]
    for at in range(turns):
        answer = assistant("", call(f"c{at}"), reasoning="hm")
        world.ask(history, answer)
        history += [answer, result(f"c{at}")]
    return world


@pytest.fixture(scope="module")
def whole() -> bytes:
    return session().journal()


@pytest.fixture
async def committer() -> Iterator[Committer]:
    committer = Committer()
    yield committer
    committer.close()


def whole_turns(data: bytes) -> list[int]:
    """The offsets at which the turn records of an undamaged journal end."""
    ends, at = [], len(PREAMBLE)
    while at < len(data):
        length, kind = struct.unpack_from("<IB", data, at)
        at += 13 + length
        if kind == Kind.TURN:
            ends.append(at)
    return ends


def test_cut_at_every_byte_it_loses_only_what_was_cut(whole: bytes) -> None:
    ends = whole_turns(whole)
    assert len(ends) == 5
    for cut in range(len(whole) + 1):
        recovered = parse_journal(whole[:cut], "cut")
        assert recovered.damage is None
        assert len(recovered.forest) == sum(end <= cut for end in ends)
        assert recovered.end + recovered.torn == cut
        if cut in ends:
            made = build(recovered.forest)
            assert audit(recovered.forest, made.traces, made.dropped) == []


def test_a_zeroed_tail_is_torn(whole: bytes) -> None:
    for zeros in (1, 12, 13, 5000):
        recovered = parse_journal(whole + bytes(zeros), "zeroed")
        assert (recovered.damage, recovered.torn, len(recovered.forest)) == (None, zeros, 5)


def test_a_changed_byte_is_never_taken_for_truth(whole: bytes) -> None:
    reference = session().forest
    for at in range(len(PREAMBLE), len(whole)):
        recovered = parse_journal(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :], "changed")
        assert recovered.damage is not None or recovered.torn
        assert recovered.damage is None or recovered.damage.turns == len(recovered.forest)
        for turn, before in zip(recovered.forest.turns, reference.turns, strict=False):
            assert turn.digest == before.digest
        assert list(audit_turns(recovered.forest)) == []


def test_damage_in_the_middle_is_an_error_with_its_place(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "session.journal"
    second = whole_turns(whole)[1]
    path.write_bytes(whole[: second + 20] + b"?" + whole[second + 21 :])
    with pytest.raises(CorruptJournalError, match="damaged payload at byte") as caught:
        read_journal(path)
    assert caught.value.turns == 2
    assert len(recover(path).forest) == 2


async def test_a_damaged_length_is_not_taken_for_a_torn_tail(
    whole: bytes, tmp_path: Path, committer: Committer
) -> None:
    path = tmp_path / "session.journal"
    second = whole_turns(whole)[1]
    path.write_bytes(whole[:second] + b"\xff\xff\xff" + whole[second + 3 :])
    with pytest.raises(CorruptJournalError, match="damaged header"):
        Journal.resume(path, committer)
    assert path.stat().st_size == len(whole)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello, this is text", "is not a journal"),
        (MAGIC + struct.pack("<H", 2), "journal schema 2, this version reads 1"),
        (PREAMBLE + frame(99, b""), "unknown kind 99"),
    ],
)
def test_a_foreign_or_newer_file_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    path.write_bytes(data)
    with pytest.raises(JournalFormatError, match=message):
        read_journal(path)


async def test_a_session_goes_on_after_a_crash(tmp_path: Path, committer: Committer) -> None:
    path = tmp_path / "s.journal"
    before = session(3)
    path.write_bytes(before.journal() + b"torn")
    recorder = await Recorder.open(path, "session", committer)
    history = [system("You are an agent."), user("Fix the bug.")]
    for at in range(3):
        history += [assistant("", call(f"c{at}"), reasoning="hm"), result(f"c{at}")]
    match = recorder.match(Conversation(tuple(history), (SHELL,)))
    assert (match.edge, match.parent) == (Edge.CONTINUE, 2)
    context = np.append(recorder.forest.tokens(2), [7, 8, 9]).astype(np.int32)
    await recorder.record(match, Generation(context, np.array([1], np.int32), np.zeros(1, np.float32), assistant("x")))
    await recorder.close({"status": "COMPLETED"})
    recovered = recover(path)
    assert (len(recovered.forest), recovered.torn, recovered.closed) == (4, 0, {"status": "COMPLETED"})
    assert recovered.forest.tokens(3).tolist() == [*context.tolist(), 1]
    assert recovered.forest[2].continued


async def test_metadata_and_marks_come_back(tmp_path: Path, committer: Committer) -> None:
    path = tmp_path / "deep" / "s.journal"
    recorder = await Recorder.open(path, "the-id", committer, {"task": "t"})
    match = recorder.match(Conversation((user("hi"),)))
    turn = await recorder.record(match, session(1).generation([1, 2], [3], assistant("yes")))
    recorder.unseen(turn)
    await recorder.close()
    recovered = recover(path)
    assert (recovered.forest.session_id, recovered.metadata) == ("the-id", {"task": "t"})
    assert recovered.forest[0].status is Status.UNSEEN
    assert recorder.journal.size == path.stat().st_size


async def test_a_journal_is_never_overwritten(tmp_path: Path, committer: Committer) -> None:
    (tmp_path / "s.journal").write_bytes(b"precious")
    with pytest.raises(JournalError, match="can't make the journal"):
        await Journal.create(tmp_path / "s.journal", Forest("s"), committer)
    assert (tmp_path / "s.journal").read_bytes() == b"precious"


async def test_side_arrays_are_kept_as_slices(tmp_path: Path, committer: Committer) -> None:
    recorder = await Recorder.open(tmp_path / "s.journal", "s", committer)
    ids = np.arange(4, dtype=np.int32)
    for at in range(2):
        context = ids[:2] if at == 0 else np.append(recorder.forest.tokens(0), ids[:1]).astype(np.int32)
        rows = np.arange(len(context) + 2, dtype=np.int16).repeat(3).reshape(-1, 3)
        history = (user("hi"), assistant("a"), user("go"))[: 1 if at == 0 else 3]
        generation = Generation(context, ids[:2], np.zeros(2, np.float32), assistant("a"), side={"experts": rows})
        await recorder.record(recorder.match(Conversation(history)), generation)
    await recorder.close()
    forest = read_journal(tmp_path / "s.journal")
    assert [turn.side["experts"].shape for turn in forest.turns] == [(4, 3), (3, 3)]
    assert forest.side(1, "experts").tolist() == rows.tolist()


@pytest.mark.parametrize("left", [0, 4, len(PREAMBLE), len(PREAMBLE) + 20])
async def test_a_file_torn_before_its_first_record_begins_anew(left: int, tmp_path: Path, committer: Committer) -> None:
    path = tmp_path / "s.journal"
    path.write_bytes(session(1).journal()[:left])
    recorder = await Recorder.open(path, "s", committer)
    await recorder.close()
    assert recover(path).forest.session_id == "s"


async def test_another_sessions_file_is_not_taken_over(tmp_path: Path, committer: Committer) -> None:
    path = tmp_path / "s.journal"
    path.write_bytes(session(1).journal())
    with pytest.raises(JournalError, match="that of session session"):
        await Recorder.open(path, "mine", committer)
