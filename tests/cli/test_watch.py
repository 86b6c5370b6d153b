# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar watch` on a terminal, while a service works, is told to stop, or goes away."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from nemo_gym_polar.cli.watch import Picture
from nemo_gym_polar.rollouts.control.records import EventRecord
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.commands import command_line
from tests.support.control import until
from tests.support.control_api import TOKEN, Desk, desk, task
from tests.support.terminal import INTERRUPT, Terminal

CURSOR_SHOWN = "\x1b[?25h"


def watching(at: Desk, *arguments: str, lines: int = 24) -> Terminal:
    environment = {"POLAR_URL": at.url, "POLAR_CONTROL_TOKEN": TOKEN}
    return Terminal(*command_line("polar", "watch", *arguments), lines=lines, environment=environment)


async def submit(at: Desk, samples: int) -> None:
    status, answer = await at.call("POST", "/rollout/task/submit", json=task(num_samples=samples))
    assert status == 200, answer
    await until(lambda: len(at.node.running) == samples)


async def test_a_task_from_its_first_event_to_its_last_on_a_small_screen(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await submit(at, samples=4)
        async with watching(at, "one", lines=9) as terminal:
            await terminal.until("one running placed 4")
            for name in list(at.node.running):
                at.node.move(name, SessionStatus.RUNNING)
            await terminal.until("one running running 4")
            for name in list(at.node.running):
                at.node.end(name)
            assert await terminal.ended() == 0
            await terminal.until("one completed completed 4")
            assert "task.completed" in terminal.shown, "the newest event"
            assert terminal.told.rindex(CURSOR_SHOWN) > terminal.told.rindex("task.completed")
            assert "Traceback" not in terminal.told


async def test_control_c_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await submit(at, samples=1)
        async with watching(at, "--all") as terminal:
            await terminal.until("one running placed 1")
            terminal.press(INTERRUPT)
            assert await terminal.ended() == 130
            await terminal.until("polar: error: interrupted")
            assert CURSOR_SHOWN in terminal.told
            assert "Traceback" not in terminal.told


async def test_a_service_that_goes_away_is_one_line(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await submit(at, samples=1)
        terminal = await watching(at, "--all").__aenter__()
        await terminal.until("one running placed 1")
    try:
        assert await terminal.ended() == 1
        await terminal.until("does it run there?")
        assert "Traceback" not in terminal.told
    finally:
        await terminal.__aexit__(None, None, None)


def event(number: int, kind: str, **fields: str) -> EventRecord:
    return EventRecord(id=number, time=0.0, kind=kind, **fields)


def drawn(picture: Picture, height: int) -> list[str]:
    page = io.StringIO()
    Console(file=page, width=60, height=height).print(picture.drawn(height))
    return [" ".join(line.split()) for line in page.getvalue().splitlines()]


def test_a_task_that_began_before_is_shown() -> None:
    picture = Picture()
    picture.take(event(7, "session.running", task_id="old", session_id="s1"))
    assert drawn(picture, 20)[1] == "old running running 1"


@pytest.mark.parametrize("height", [4, 9, 24, 60])
@pytest.mark.parametrize("tasks", [1, 40])
def test_the_newest_is_never_cut_off(height: int, tasks: int) -> None:
    picture = Picture()
    for number in range(tasks):
        picture.take(event(number, "task.submitted", task_id=f"[t{number}]"))
        picture.take(event(number, "session.running", task_id=f"[t{number}]", session_id="s" * 80))
    lines = drawn(picture, height)
    assert len(lines) <= max(height, 7), "one line each, however long"
    assert lines[-1].split()[1:3] == ["session.running", f"[t{tasks - 1}]"]
    assert any(line.startswith(f"[t{tasks - 1}] running") for line in lines)
