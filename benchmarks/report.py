# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The tables and plots of docs/performance.md, from the measurements in docs/performance/*.json.

python benchmarks/report.py                      # write tables and plots anew
python benchmarks/report.py --measure            # run every benchmark first: about half an hour
python benchmarks/report.py --measure rollouts   # or a part (calls, rollouts), or some by their names
python benchmarks/report.py --check              # say whether they are what the measurements give
python benchmarks/report.py --measure --small --into DIR    # try it all out, and leave docs as it is
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import charts
import tables
from measurements import MEASUREMENTS, PARTS, FailedError, chosen
from processes import ROOT

PAGE = ROOT / "docs" / "performance.md"
STORE = ROOT / "docs" / "performance"
BLOCK = re.compile(r"(<!-- (\w+): made by benchmarks/report.py -->\n).*?(<!-- end -->)", re.DOTALL)


def measure(names: list[str], store: Path, *, small: bool, minutes: float) -> list[str]:
    """One after the other; each is stored once it is whole. Returns what went wrong with the others."""
    store.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            found = MEASUREMENTS[name].run(small=small, minutes=minutes)
        except FailedError as error:
            failed.append(f"{name} {error}")
            continue
        (store / f"{name}.json").write_text(json.dumps(_rounded(found), indent=1) + "\n")
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return failed


def _rounded(value: Any) -> Any:
    """Four digits that count are more than the noise leaves."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def stored(store: Path = STORE) -> dict[str, Any]:
    """The measurements in `store`, and the page's own where it has none."""
    files = {name: _file(name, store) for name in MEASUREMENTS}
    if missing := [name for name, file in files.items() if not file.is_file()]:
        raise FailedError(f"docs/performance lacks {', '.join(missing)}: python benchmarks/report.py --measure")
    return {name: json.loads(file.read_text()) for name, file in files.items()}


def _file(name: str, store: Path) -> Path:
    own = store / f"{name}.json"
    return own if own.is_file() else STORE / own.name


def made(found: dict[str, Any], page: str) -> dict[Path, str]:
    """File → its text, for the page and its plots."""
    blocks = tables.all_tables(found)
    unknown = {match[2] for match in BLOCK.finditer(page)} ^ set(blocks)
    if unknown:
        raise FailedError(f"{PAGE.name} and the tables differ in {', '.join(sorted(unknown))}")
    text = BLOCK.sub(lambda match: f"{match[1]}\n{blocks[match[2]]}\n\n{match[3]}", page)
    return {PAGE: text, **{STORE / name: drawing for name, drawing in charts.all_charts(found).items()}}


def run(options: argparse.Namespace) -> list[str]:
    """What went wrong, or is stale."""
    store, failed = options.into or STORE, []
    if options.measure is not None:
        failed = measure(chosen(options.measure), store, small=options.small, minutes=options.minutes)
    files = made(stored(store), PAGE.read_text())
    if options.into:
        files = {options.into / path.name: text for path, text in files.items()}
    if options.check:
        stale = [path.name for path, text in files.items() if not path.is_file() or path.read_text() != text]
        return [*failed, *(f"{name} is stale" for name in stale)]
    for path, text in files.items():
        path.write_text(text)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ", ".join([*PARTS, *MEASUREMENTS])
    parser.add_argument("--measure", nargs="*", metavar="NAME", help=f"measure all, or some of: {known}")
    parser.add_argument("--minutes", type=float, default=20, help="give up a measurement after these (%(default)s)")
    parser.add_argument("--small", action="store_true", help="measure next to nothing, to see that it works")
    parser.add_argument("--into", type=Path, metavar="DIR", help="keep measurements, page and plots there")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something differs")
    options = parser.parse_args()
    if options.small and not options.into:
        parser.error("--small needs --into DIR: the page shows full measurements")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no measurement outlives this process
    try:
        if wrong := run(options):
            sys.exit(f"benchmarks: {'; '.join(wrong)}")
    except FailedError as error:
        sys.exit(f"benchmarks: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
