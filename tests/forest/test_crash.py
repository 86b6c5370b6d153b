# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A writer killed in the middle of its work has lost nothing that it acknowledged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nemo_gym_polar.forest.audit import audit
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.journal import recover

_WRITER = """
import asyncio, sys
from pathlib import Path
from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.recorder import Recorder
from tests.forest.world import World, assistant, call, result, user

async def session(name, committer):
    recorder = await Recorder.open(Path(sys.argv[1]) / f"{name}.journal", name, committer)
    world, history = World(forest=recorder.forest, seed=hash(name) % 1000), [user("go")]
    for at in range(10_000):
        match = recorder.match(Conversation(tuple(history)))
        answer = assistant("", call(f"{name}-{at}"))
        turn = await recorder.record(match, world.generation(world.context(match), [5, at + 10, 6], answer))
        sys.stdout.write(f"{name} {turn.index} {turn.digest.hex()}\\n")
        sys.stdout.flush()
        history += [answer, result(f"{name}-{at}")]

async def main():
    committer = Committer(float(sys.argv[2]))
    await asyncio.gather(*(session(f"s{at}", committer) for at in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("window", [0.0, 0.002])
def test_kill_under_load_loses_no_acknowledged_turn(window: float, tmp_path: Path) -> None:
    acknowledged = killed_writer(tmp_path, window)
    assert len(acknowledged) > 50
    recovered = {path.stem: recover(path) for path in tmp_path.glob("*.journal")}
    for name, turn, digest in acknowledged:
        assert recovered[name].forest[int(turn)].digest.hex() == digest
    for found in recovered.values():
        made = build(found.forest)
        assert found.damage is None
        assert audit(found.forest, made.traces, made.dropped) == []
        assert len(made.traces) == min(1, len(found.forest))


def killed_writer(directory: Path, window: float) -> list[list[str]]:
    """Run the writer until it has acknowledged some turns, kill it, and return what it acknowledged."""
    command = [sys.executable, "-c", _WRITER, str(directory), str(window)]
    output = directory / "acknowledged"
    with (
        output.open("wb") as stream,
        subprocess.Popen(command, stdout=stream, env={**os.environ, "PYTHONPATH": "."}) as writer,
    ):
        deadline = time.monotonic() + 60
        while output.stat().st_size < 10_000 and writer.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
    lines = output.read_text().split("\n")[:-1]  # the last line may be torn
    return [line.split(" ") for line in lines]
