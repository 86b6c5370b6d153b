# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Imports run downwards only, in no circle, and the trainer's libraries stay with the trainer."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "nemo_gym_polar"
BASE = {"chat", "tokens"}
LEAVES = {"harnesses", "runtimes", "evaluators"}
GATEWAY = {"gateway", "engines", "dialects", "forest"}

# What each room may import from its neighbours.
MAY_IMPORT: dict[str, set[str]] = {
    "chat": set(),
    "tokens": set(),
    "dialects": BASE,
    "engines": BASE,
    "forest": BASE,
    "export": {*BASE, "forest"},
    "gateway": {*BASE, "engines", "dialects", "forest"},
    "conformance": set(),  # a client like any other: it knows the gateway by its URL only
    "runtimes": set(),
    "harnesses": {"runtimes"},
    "evaluators": {*BASE, "runtimes", "forest"},
    "rollouts": {*BASE, *GATEWAY, *LEAVES, "tasks", "export"},
    "tasks": {"rollouts"},
    "policy": {*BASE, "engines", "dialects", "tasks"},
    "environment": {*BASE, *GATEWAY, *LEAVES, "rollouts", "tasks", "export"},
    "training": {*BASE, *GATEWAY, *LEAVES, "rollouts", "tasks", "export", "policy"},
}
TRAINER_ONLY = {"torch", "transformers", "vllm", "megatron", "safetensors", "tensorboard", "matplotlib"}
TRAINER_ROOMS = {"policy", "training"}
NO_NETWORK = {"aiohttp", "fastapi", "httpx", "requests", "socket", "starlette", "uvicorn"}
PURE_ROOMS = {"chat", "tokens", "dialects", "forest"}


@pytest.fixture(scope="session")
def modules(repo: Path) -> dict[str, set[str]]:
    """Dotted name of every module in the package → the names that it imports."""
    found = {}
    for path in sorted((repo / PACKAGE).rglob("*.py")):
        parts = path.relative_to(repo).with_suffix("").parts
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[".".join(parts).removesuffix(".__init__")] = set(imported(tree, parts[:-1]))
    return found


def imported(tree: ast.Module, package: tuple[str, ...]) -> Iterator[str]:
    """Every name that a module imports, also inside functions: `a.b` for `import a.b` and for `from a import b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_imports_run_downwards(modules: dict[str, set[str]]) -> None:
    breaches = [
        f"{module} imports {name}"
        for module, names in modules.items()
        if room(module) in MAY_IMPORT
        for name in names
        if name.startswith(f"{PACKAGE}.") and not name.endswith(".__version__")
        if room(name) not in {room(module), *MAY_IMPORT[room(module)]}
    ]
    assert not breaches


def test_every_room_has_a_rule(modules: dict[str, set[str]]) -> None:
    assert {room(module) for module in modules} <= {*MAY_IMPORT, "cli", ""}


def test_no_circles(modules: dict[str, set[str]]) -> None:
    graph = {
        module: {target for name in names if (target := owner(name, modules)) and target != module}
        for module, names in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the circle


def owner(name: str, modules: dict[str, set[str]]) -> str | None:
    """The module that an imported name is, or stands in."""
    if name in modules:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in modules else None


@pytest.mark.parametrize(
    ("forbidden", "allowed_rooms"),
    [
        pytest.param(TRAINER_ONLY, TRAINER_ROOMS, id="trainer"),
        pytest.param({"aiosqlite", "alembic", "asyncpg", "sqlalchemy"}, {"rollouts"}, id="database"),
        pytest.param({"ray", "nemo_gym"}, {"environment", "rollouts", "training"}, id="cluster only where used"),
    ],
)
def test_libraries_stay_in_their_rooms(
    modules: dict[str, set[str]], forbidden: set[str], allowed_rooms: set[str]
) -> None:
    breaches = [
        f"{module} imports {name}"
        for module, names in modules.items()
        if room(module) not in allowed_rooms
        for name in names
        if name.split(".")[0] in forbidden
    ]
    assert not breaches


def test_pure_rooms_do_no_network(modules: dict[str, set[str]]) -> None:
    breaches = [
        f"{module} imports {name}"
        for module, names in modules.items()
        if room(module) in PURE_ROOMS
        for name in names
        if name.split(".")[0] in NO_NETWORK
    ]
    assert not breaches


def test_the_check_sees_a_breach() -> None:
    tree = ast.parse(
        "def f():\n    from nemo_gym_polar.gateway import app\n    import torch.nn\n    from ..chat import Text"
    )
    names = set(imported(tree, ("nemo_gym_polar", "forest")))
    assert names == {"nemo_gym_polar.gateway.app", "torch.nn", "nemo_gym_polar.chat.Text"}
    assert "gateway" not in MAY_IMPORT["forest"]
