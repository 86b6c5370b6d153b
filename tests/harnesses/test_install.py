# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Installing with the real npm, from packages made here, so that no network is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemo_gym_polar.harnesses import compile_cache, install, node
from nemo_gym_polar.harnesses.base import HarnessError
from nemo_gym_polar.harnesses.install import LOCKS, NpmPackage
from nemo_gym_polar.harnesses.registry import HARNESSES, find


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path: Path) -> NpmPackage:
    """A package without dependencies: npm has nothing to fetch."""
    locks = tmp_path / "locks"
    (locks / "tool").mkdir(parents=True)
    name = {"name": "polar-harness-tool", "private": True}
    (locks / "tool" / "package.json").write_text(json.dumps(name))
    lock = {**name, "lockfileVersion": 3, "requires": True, "packages": {"": name}}
    (locks / "tool" / "package-lock.json").write_text(json.dumps(lock))
    return NpmPackage("tool", "1.0.0", locks)


def test_install_once(package: NpmPackage, cache: Path) -> None:
    assert not package.installed()
    calls: list[Path] = []
    package.install(calls.append)
    package.install(calls.append)
    assert len(calls) == 1
    assert package.installed()
    assert package.directory.parent == cache / "harnesses"
    assert package.directory.stat().st_mode & 0o777 == 0o755
    assert {path.name for path in package.directory.parent.iterdir()} == {
        package.directory.name,
        f"{package.directory.name}.lock",
    }


def test_two_processes_install_once(package: NpmPackage, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nemo_gym_polar.harnesses.install import NpmPackage\n"
        "mark = lambda directory: Path(sys.argv[2]).open('a').write('x')\n"
        "NpmPackage('tool', '1.0.0', Path(sys.argv[1])).install(mark)"
    )
    command = [sys.executable, "-c", code, str(package.locks), str(tmp_path / "marks")]
    for process in [subprocess.Popen(command) for _ in range(3)]:
        assert process.wait(60) == 0
    assert (tmp_path / "marks").read_text() == "x"


def test_what_fails_leaves_nothing_and_says_what_to_do(package: NpmPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = package.locks / "tool" / "package-lock.json"
    lock.write_text(lock.read_text().replace("lockfileVersion", "broken"))
    (package.locks / "tool" / "package.json").write_text('{"name": "x", "dependencies": {"nothing-there": "1.0.0"}}')
    with pytest.raises(HarnessError, match=r"npm could not install tool 1.0.0: .*POLAR_CACHE_DIR"):
        package.install()
    assert not package.installed()
    assert [path.suffix for path in package.directory.parent.iterdir()] == [".lock"]


def test_a_failing_preparation_leaves_nothing(package: NpmPackage) -> None:
    def fail(directory: Path) -> None:
        raise HarnessError("no")

    with pytest.raises(HarnessError, match="no"):
        package.install(fail)
    assert not package.installed()


def test_missing_node_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HarnessError, match=r"pip install 'nemo-gym-polar\[harness\]'"):
        node.root()


def test_another_lock_is_another_directory(package: NpmPackage) -> None:
    before = package.directory
    lock = package.locks / "tool" / "package-lock.json"
    lock.write_text(lock.read_text() + "\n")
    assert package.directory != before


@pytest.mark.parametrize("name", sorted(path.name for path in LOCKS.iterdir()))
def test_locks_have_exact_versions_with_integrity_and_no_addresses(name: str) -> None:
    lock = json.loads((LOCKS / name / "package-lock.json").read_text())
    packages = {path: entry for path, entry in lock["packages"].items() if path}
    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not [path for path, entry in packages.items() if "resolved" in entry]
    assert "://" not in (LOCKS / name / "package-lock.json").read_text()
    wanted = json.loads((LOCKS / name / "package.json").read_text())["dependencies"]
    assert wanted == {pi_name: packages[f"node_modules/{pi_name}"]["version"] for pi_name in wanted}


@pytest.mark.parametrize("name", sorted(HARNESSES.keys() - {"shell"}))
def test_the_lock_is_of_the_version_that_is_named(name: str) -> None:
    wanted = json.loads((LOCKS / name / "package.json").read_text())["dependencies"]
    assert list(wanted.values()) == [find(name)({}).about.version]


def test_cache_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("POLAR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert install.cache_root() == tmp_path / "nemo-gym-polar"


def test_npm_reasons() -> None:
    assert install.reason("npm error code E404\nnpm error 404 Not Found - x\n") == "404 Not Found - x"
    assert install.reason("") == "npm said nothing"


def test_the_compile_cache_is_shared_with_the_user_of_the_sandbox(tmp_path: Path) -> None:
    own = tmp_path / f"v24-x64-abc-{os.getuid()}"
    own.mkdir(mode=0o700)
    (own / "entry").touch(0o600)
    compile_cache.share(tmp_path)
    assert (tmp_path / "v24-x64-abc-1000" / "entry").stat().st_mode & 0o777 == 0o644
