# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md says what the stored measurements say."""

from __future__ import annotations

import contextlib
import copy
import importlib
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest


@pytest.fixture
def report(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """benchmarks/report.py, imported as its own command does, and forgotten afterwards."""
    monkeypatch.syspath_prepend(repo / "benchmarks")
    before = set(sys.modules)
    yield importlib.import_module("report")
    for name in set(sys.modules) - before:
        if str(repo / "benchmarks") in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_tables_and_plots_are_what_the_measurements_give(report: ModuleType) -> None:
    for path, text in report.made(report.stored(), report.PAGE.read_text()).items():
        assert path.read_text() == text, f"{path.name} is stale: python benchmarks/report.py"


def test_another_measurement_gives_another_page(report: ModuleType) -> None:
    found = copy.deepcopy(report.stored())
    for numbers in found["side_by_side"]["growing"]["polar"]:
        numbers["cpu_ms_100"] = 77.0
        numbers["cpu_ms_by_tenth"] = [77.0] * 10
    made = report.made(found, report.PAGE.read_text())
    assert "77 (77 to 77)" in made[report.PAGE]
    assert all(path.read_text() != text for path, text in made.items())


def test_another_measurement_of_rollouts_gives_other_tables(report: ModuleType) -> None:
    found = copy.deepcopy(report.stored())
    for row in found["stages"]["plans"]:
        row["sessions_per_second"], row["model_sessions_per_second"] = 7.0, 7.7
    found["many"]["plans"][0]["sessions"] = 12_345
    found["control_plane"]["cpu_ms_per_session"] = 6.54
    found["nodes"] |= {"control_ms": 20.0, "nodes": [{**found["nodes"]["nodes"][0], "nodes": 2, **RATE}]}
    found["builders"]["workloads"][0]["ratios"]["updates"] = 9.87
    page = report.made(found, report.PAGE.read_text())[report.PAGE]
    assert "are 10 to 10 % off" in page
    assert "12,345 sessions at once" in page
    assert "one service feeds about 250 such nodes. Measured here: 6.54 ms" in page
    assert re.search(r"\| updates \| [\d,]+ → [\d,]+: 9.87 \|", page)


RATE = {"sessions_per_second": 0.4}  # of two nodes: 50 a second are 250 nodes


def test_a_measurement_of_its_own_is_preferred(report: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "forest.json").write_text("[7]")
    found, ours = report.stored(tmp_path), report.stored()
    assert found["forest"] == [7]
    assert found | {"forest": ours["forest"]} == ours


def test_nothing_outlives_a_measurement_that_takes_too_long(report: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import subprocess; subprocess.run(['tail', '-f', __file__])")
    measurement = report.MEASUREMENTS["forest"].__class__("calls", str(script))
    with pytest.raises(report.FailedError, match="took more than"):
        measurement.run(small=False, minutes=0.02)
    deadline = time.monotonic() + 10
    while any(str(script).encode() in line for line in command_lines()):
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.01)


def command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (process / "cmdline").read_bytes()


def test_a_page_without_a_table_is_refused(report: ModuleType) -> None:
    page = report.PAGE.read_text().replace("<!-- finish: made", "<!-- finished: made")
    with pytest.raises(report.FailedError, match="differ in finish, finished"):
        report.made(report.stored(), page)


def test_plots_are_well_formed(report: ModuleType) -> None:
    for drawing in report.charts.all_charts(report.stored()).values():
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"a": 1.0, "b": 0.5}, "met"),
        ({"a": 1.01, "b": 2.0}, "missed"),
        ({"a": 1.0, "b": 1.1}, "met: a; missed: the others"),
        ({"a": float("nan")}, "missed"),
    ],
)
def test_a_bar_is_met_or_missed(report: ModuleType, values: dict[str, float], verdict: str) -> None:
    assert report.tables.bars.verdict(1.0, values) == verdict


def test_every_peer_is_pinned_at_the_version_that_is_named(report: ModuleType, repo: Path) -> None:
    peers = importlib.import_module("peers").PEERS
    for peer in peers.values():
        pins = peer.pins.read_text()
        assert re.search(rf"^{peer.distribution}=={re.escape(peer.version)} ", pins, re.MULTILINE)
        assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\S)", pins.strip()))
        assert "://" not in pins
    assert {path.stem for path in (repo / "benchmarks" / "peers").glob("*.txt")} == set(peers)
