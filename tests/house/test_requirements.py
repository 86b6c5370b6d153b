# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The pins fit pyproject.toml, and the core install stays without the trainer."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def pins(path: Path) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;\\]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.fixture(scope="session")
def project(repo: Path) -> dict[str, list[str]]:
    """Extra → requirements; the core's stand under «»."""
    table = tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": table["dependencies"], **table["optional-dependencies"]}


def test_pins_satisfy_the_declared_dependencies(repo: Path, project: dict[str, list[str]]) -> None:
    pinned = pins(repo / "requirements/torch.txt") | pins(repo / "requirements/dev.txt")
    for requirement in (Requirement(text) for texts in project.values() for text in texts):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not pinned: run scripts/lock.sh"
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}: run scripts/lock.sh"


def test_core_pins_satisfy_the_core(repo: Path, project: dict[str, list[str]]) -> None:
    core = pins(repo / "requirements/core.txt")
    assert {canonicalize_name(Requirement(text).name) for text in project[""]} <= set(core)


def test_core_has_no_trainer(repo: Path) -> None:
    core = pins(repo / "requirements/core.txt")
    assert not set(core) & {"torch", "transformers", "safetensors", "ray", "nemo-gym", "tensorboard", "vllm"}


def test_files_of_pins_agree(repo: Path) -> None:
    whole = pins(repo / "requirements/dev.txt")
    for name in ("core", "torch", "uv"):
        part = pins(repo / f"requirements/{name}.txt")
        assert {key: version for key, version in part.items() if whole.get(key, version) != version} == {}


def declared(project: dict[str, list[str]], *extras: str) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for extra in extras for text in project[extra]}


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def third_party(path: Path) -> Iterator[set[str]]:
    """For every import of a module, wherever in its text, the distributions that may be meant; a namespace has many."""
    owners = distributions()
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    for name in names & owners.keys():
        yield {canonicalize_name(owner) for owner in owners[name]}


EXTRAS = {
    "conformance": ("conformance",),
    "export": ("parquet",),
    "gateway": ("otel",),
    "policy": ("train",),
    "rollouts": ("ray",),
    "training": ("train",),
    "environment": ("gym",),
}


def test_every_import_is_declared(repo: Path, project: dict[str, list[str]]) -> None:
    package = repo / "nemo_gym_polar"
    undeclared = []
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        allowed = declared(project, "", *EXTRAS.get(room, ())) | {"nemo-gym-polar"}
        missing = [owners for owners in third_party(path) if not owners & allowed]
        undeclared += [f"{path.relative_to(repo)} imports from {' or '.join(sorted(owners))}" for owners in missing]
    assert not undeclared
