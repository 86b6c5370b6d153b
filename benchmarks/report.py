# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The tables and plots of docs/performance.md, from the measurements in docs/performance/*.json.

python benchmarks/report.py              # write tables and plots anew
python benchmarks/report.py --measure    # run every benchmark first: about twelve minutes
python benchmarks/report.py --check      # say whether they are what the measurements give
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import charts
import tables
from processes import ROOT

PAGE = ROOT / "docs" / "performance.md"
STORE = ROOT / "docs" / "performance"
SCENARIOS = ("small", "large", "growing")
COMMANDS: dict[str, list[str]] = {
    "side_by_side": ["side_by_side.py"],
    "finish": ["finish.py"],
    "forest": ["forest.py"],
    **{f"profile_{name}": ["call_profile.py", "--scenario", name] for name in SCENARIOS},
}
BLOCK = re.compile(r"(<!-- (\w+): made by benchmarks/report.py -->\n).*?(<!-- end -->)", re.DOTALL)


def measure(names: list[str]) -> None:
    """One after the other; a measurement is stored once it is whole."""
    STORE.mkdir(parents=True, exist_ok=True)
    for name in names:
        script, *options = COMMANDS[name]
        command = [sys.executable, str(ROOT / "benchmarks" / script), "--json", *options]
        print(f"{name} …", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        found = json.loads(done.stdout)
        (STORE / f"{name}.json").write_text(json.dumps(_rounded(found), indent=1) + "\n")


def _rounded(value: Any) -> Any:
    """Four digits that count are more than the noise leaves."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def stored() -> dict[str, Any]:
    missing = [name for name in COMMANDS if not (STORE / f"{name}.json").is_file()]
    if missing:
        raise SystemExit(
            f"benchmarks: docs/performance lacks {', '.join(missing)}: python benchmarks/report.py --measure"
        )
    return {name: json.loads((STORE / f"{name}.json").read_text()) for name in COMMANDS}


def made(found: dict[str, Any], page: str) -> dict[Path, str]:
    """File → its text, for the page and its plots."""
    blocks = tables.all_tables(found)
    unknown = {match[2] for match in BLOCK.finditer(page)} ^ set(blocks)
    if unknown:
        raise SystemExit(f"benchmarks: {PAGE.name} and the tables differ in {', '.join(sorted(unknown))}")
    text = BLOCK.sub(lambda match: f"{match[1]}\n{blocks[match[2]]}\n\n{match[3]}", page)
    return {PAGE: text, **{STORE / name: drawing for name, drawing in charts.all_charts(found).items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", metavar="NAME", help=f"measure all, or some of: {', '.join(COMMANDS)}")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something differs")
    arguments = parser.parse_args()
    if arguments.measure is not None:
        if unknown := set(arguments.measure) - set(COMMANDS):
            parser.error(f"no such measurement: {', '.join(unknown)}; there are {', '.join(COMMANDS)}")
        measure(arguments.measure or list(COMMANDS))
    files = made(stored(), PAGE.read_text())
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text() != text]
    if arguments.check:
        sys.exit(f"stale: {', '.join(path.name for path in stale)}" if stale else 0)
    for path, text in files.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
