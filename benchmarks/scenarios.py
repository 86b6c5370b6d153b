# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is measured. Every function does one round on one server and gives numbers; rounds are repeated in turn."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from conversations import Talk, Texts, talk
from servers import Bench, Server

Numbers = dict[str, Any]
START, SAMPLED, OBSERVED = 8000, 150, 250
CHECKPOINTS = (20, 50, 100)
TOGETHER = 8


async def calls(bench: Bench, server: Server, texts: Texts, *, prompt: int, sessions: int, later: int) -> Numbers:
    """CPU milliseconds of first calls and of `later` further ones, `TOGETHER` sessions at a time."""
    talks = [await talk(bench, server, texts.opening(prompt)) for _ in range(sessions)]
    first = await _together(server, talks)
    further = []
    for _ in range(later):
        for one in talks:
            one.observe(texts.of(OBSERVED if prompt > START else 64))
        further.append(await _together(server, talks))
    for one in talks:
        await one.close()
    return {"first_cpu_ms": first, "cpu_ms": sum(further) / len(further)}


async def _together(server: Server, talks: list[Talk]) -> float:
    """CPU milliseconds per call of a turn of each."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(each: Talk) -> None:
        async with room:
            await each.turn()

    before = server.cpu()
    await asyncio.gather(*map(one, talks))
    return 1e3 * (server.cpu() - before) / len(talks)


async def growing(bench: Bench, server: Server, texts: Texts, *, turns: int, sessions: int = 1) -> Numbers:
    """Sessions, turn by turn: CPU per turn, what is kept on disk and in memory, what the end costs."""
    talks = [await talk(bench, server, texts.opening(START)) for _ in range(sessions)]
    cpu: list[float] = []
    wall: list[float] = []
    disk, memory = server.kept(), server.resident()
    for _ in range(turns):
        before = server.cpu()
        wall += await asyncio.gather(*(one.turn() for one in talks))
        cpu.append(1e3 * (server.cpu() - before) / sessions)
        for one in talks:
            one.observe(texts.of(OBSERVED))
    grown, held = server.kept() - disk, server.resident() - memory
    before = server.cpu()
    for one in talks:
        await one.close()
    unique = sessions * (START + turns * SAMPLED + (turns - 1) * OBSERVED)
    means = {f"cpu_ms_{at}": sum(cpu[:at]) / at for at in {*CHECKPOINTS, turns} if at <= turns}
    tenth = max(1, turns // 10)
    return {
        **means,
        "cpu_ms": sum(cpu) / turns,
        "close_cpu_ms": 1e3 * (server.cpu() - before) / sessions,
        "cpu_ms_by_tenth": [sum(cpu[at : at + tenth]) / tenth for at in range(0, turns - tenth + 1, tenth)],
        "wall_ms_last": 1e3 * sorted(wall[-5 * sessions :])[len(wall[-5 * sessions :]) // 2],
        "disk_bytes_per_token": grown / unique,
        "memory_kb_per_turn": held / 1024 / (sessions * turns),
    }


async def latency(bench: Bench, servers: list[Server], texts: Texts, *, conversations: int) -> dict[str, list[float]]:
    """Milliseconds of the second and third call of small conversations, one call at a time.

    The servers in turn, in another order each time: what one still does after its answer falls on all.
    """
    waited: dict[str, list[float]] = {server.gateway.name: [] for server in servers}
    random = Random(0)
    for at in range(conversations):
        for server in random.sample(servers, len(servers)):
            if server.gateway.slow and at % 4:
                continue
            one = await talk(bench, server, texts.opening(512))
            await one.turn()
            for _ in range(2):
                one.observe(texts.of(64))
                waited[server.gateway.name].append(1e3 * await one.turn())
            await one.close()
    return waited
