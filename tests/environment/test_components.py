# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The component root as NeMo Gym reads it: found by name, wired, and true to its registry record."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from nemo_gym_polar.environment import COMPONENTS
from nemo_gym_polar.environment.dataset import EXAMPLES, examples, lines, main
from nemo_gym_polar.environment.rows import task_request
from nemo_gym_polar.tasks.load import load_task_set
from nemo_gym_polar.tasks.wording import FILE_NAMES

ENVIRONMENT = COMPONENTS / "environments" / "polar"
SERVERS = [COMPONENTS / "resources_servers" / "polar", COMPONENTS / "responses_api_agents" / "polar_agent"]


def example_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ENVIRONMENT / "data" / "example.jsonl").read_text().splitlines()]


def test_there_are_exactly_five_example_rows() -> None:
    assert len(example_rows()) == EXAMPLES == 5
    assert (ENVIRONMENT / "data" / "example.jsonl").read_bytes() == b"".join(lines(examples()))


def test_example_rows_are_bundled_problems_about_every_file() -> None:
    known = {task.task_id: task for task in load_task_set("touch").train}
    for row in example_rows():
        task = task_request(row, {})
        assert task.instruction == known[task.task_id].instruction
        assert task.evaluator == known[task.task_id].evaluator
    assert len({row["task"]["evaluator"]["config"]["command"] for row in example_rows()}) == len(FILE_NAMES)


def test_what_a_row_leaves_open_is_for_the_agent_to_say() -> None:
    task = task_request(example_rows()[0], {"timeout_seconds": 7.0, "runtime": {"backend": "local"}})
    assert (task.timeout_seconds, task.runtime.backend) == (7.0, "local")


def test_a_task_set_becomes_a_data_set(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["remove", "--split", "heldout"]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert len(rows) == len(load_task_set("remove").heldout)
    assert task_request(rows[0], {}).runtime.files


def test_an_unknown_task_set_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 1
    assert capsys.readouterr().err.startswith("dataset: tasks='nothing' is neither")


def test_gym_finds_the_environment() -> None:
    registry = pytest.importorskip("nemo_gym.registry")
    found = registry.discover_environments(COMPONENTS / "environments")["polar"]
    assert found.domain == "coding"
    assert "unmodified coding agent" in found.description


def test_gym_wires_the_servers() -> None:
    global_config = pytest.importorskip("nemo_gym.global_config")
    policy = {"policy_base_url": "http://127.0.0.1:1/v1", "policy_model_name": "m"}
    config = global_config.GlobalConfigDictParser().parse(
        global_config.GlobalConfigDictParserConfig(
            initial_global_config_dict=OmegaConf.create({"config_paths": [str(ENVIRONMENT / "config.yaml")], **policy}),
            skip_load_from_cli=True,
            skip_load_from_dotenv=True,
        )
    )
    agent = config.polar_agent.responses_api_agents.polar_agent
    assert agent.resources_server.name == "polar"
    assert agent.port != config.polar.resources_servers.polar.port


def test_the_registry_record_mirrors_the_config() -> None:
    manifest = yaml.safe_load((ENVIRONMENT / "manifest.yaml").read_text())
    config = yaml.safe_load((ENVIRONMENT / "config.yaml").read_text())
    agent = config["polar_agent"]["responses_api_agents"][manifest["agent_server"]]
    resources = config[agent["resources_server"]["name"]]["resources_servers"][manifest["resources_server"]]
    assert manifest["name"] == ENVIRONMENT.name
    assert manifest["datasets"] == agent["datasets"]
    assert (manifest["domain"], manifest["description"]) == (resources["domain"], resources["description"])


@pytest.mark.parametrize("directory", SERVERS, ids=lambda path: path.name)
def test_a_server_directory_can_be_started(directory: Path) -> None:
    assert "nemo-gym-polar" in (directory / "requirements.txt").read_text()
    assert not (directory / "pyproject.toml").exists()
    tree = ast.parse((directory / "app.py").read_text())
    assert "run_webserver" in ast.dump(tree)


def test_the_root_is_no_checkout_of_its_own() -> None:
    """A pyproject.toml two levels above a server makes NeMo Gym take it for an editable install."""
    assert not (COMPONENTS / "pyproject.toml").exists()
