# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""NeMo Gym's own command line on a plain install of our wheel: it finds the environment, starts it, and collects
rollouts of the real Pi with the embedded policy, which NeMo RL could train on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from urllib import request

import pytest

from nemo_gym_polar.environment.rows import row
from nemo_gym_polar.environment.venvs import link_venvs
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.harnesses.pi import PiHarness
from tests.environment.reference_walk import walk
from tests.support import gym_venv
from tests.support.gym_process import GymCommand, free_ports
from tests.support.policy_server import policy_server
from tests.support.rollouts import Marked, task

pytestmark = pytest.mark.timeout(600)

EXAMPLES = "environments/polar/data/example.jsonl"
REPEATS = 2


@pytest.fixture(scope="module")
def gym(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GymCommand]:
    root = tmp_path_factory.mktemp("gym")
    (root / "elsewhere").mkdir()
    venv = gym_venv.make(root / "venv", Path(__file__).resolve().parents[2])
    command = GymCommand(venv, root / "elsewhere")
    try:
        yield command
    finally:
        command.kill()


def test_the_environment_is_found_from_anywhere(gym: GymCommand) -> None:
    listed = gym.run("list", "environments", "--json")
    assert listed.returncode == 0, listed.stderr
    found = {entry["name"]: entry for entry in json.loads(listed.stdout)}
    assert found["polar"]["domain"] == "coding"


@dataclass(slots=True)
class Collected:
    """What a collection left on disk."""

    results: list[dict[str, Any]]
    aggregates: dict[str, Any]
    log: str
    journals: Path
    hanging: Marked


@pytest.fixture(scope="module")
def collected(gym: GymCommand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    PiHarness({}).install()
    work = tmp_path_factory.mktemp("collected")
    head, resources, agent = free_ports(3)
    with policy_server(work / "policy.log") as policy, gym.cluster():
        settings = [
            *("--environment", "polar", "--model", policy.name, "--model-url", f"{policy.url}/v1"),
            f"+head_server={{host:127.0.0.1,port:{head}}}",
            *link_venvs(work / "venvs", venv=gym.venv),
            f"++polar.resources_servers.polar.port={resources}",
            f"++polar.resources_servers.polar.engine.tokenizer={policy.directory}",
            "++polar.resources_servers.polar.engine.renderer_options={enable_thinking:false}",
            f"++polar.resources_servers.polar.directory={work}",
            f"++polar_agent.responses_api_agents.polar_agent.port={agent}",
            f"++polar_agent.responses_api_agents.polar_agent.rollouts.directory={work}",
        ]
        with gym.servers(*settings, log=work / "servers.log"):
            done = gym.run(
                *("eval", "run", "--no-serve", "--agent", "polar_agent", "--input", EXAMPLES),
                *("--output", str(work / "rollouts.jsonl"), "--num-repeats", str(REPEATS)),
                f"+head_server={{host:127.0.0.1,port:{head}}}",
            )
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            hanging = left_hanging(f"http://127.0.0.1:{agent}/run")
    results = [json.loads(line) for line in (work / "rollouts.jsonl").read_text().splitlines()]
    failures = (work / "rollouts_failures.jsonl").read_text()
    log = f"{failures[:3000]}\n{(work / 'servers.log').read_text(errors='replace')[-5000:]}"
    aggregates = json.loads((work / "rollouts_aggregate_metrics.json").read_text())
    yield Collected(results, aggregates, log, work / "journals", hanging)


def left_hanging(url: str) -> Marked:
    """A rollout whose harness never ends, under way when the servers are stopped."""
    marked = Marked()
    body = json.dumps(row(task(f"{marked.command} & wait"))).encode()
    asked = request.Request(url, body, {"content-type": "application/json"})
    Thread(target=ask_in_vain, args=(asked,), daemon=True).start()
    assert asyncio.run(marked.becomes(True))
    return marked


def ask_in_vain(asked: request.Request) -> None:
    with contextlib.suppress(OSError, HTTPException):
        request.urlopen(asked).close()


def test_every_example_row_gives_trainable_rollouts(collected: Collected) -> None:
    assert len(collected.results) == 5 * REPEATS, collected.log
    for result in collected.results:
        read = walk(result)
        assert read.mask.count(True) == result["delivered_tokens"] > 0
        assert result["mask_sample"] is result["instance_config"]["mask_sample"] is False
        assert result["reward"] in (0.0, 1.0)
        assert result["undelivered_main_tokens"] == result["dropped_tokens"] == 0


def test_the_policy_used_the_harness_s_tool(collected: Collected) -> None:
    items = [item["type"] for result in collected.results for item in result["response"]["output"]]
    assert items.count("function_call") == items.count("function_call_output") > 0
    assert any(walk(result).turns > 1 for result in collected.results)


def test_rollouts_of_a_task_form_a_group(collected: Collected) -> None:
    prompts = defaultdict(set)
    for result in collected.results:
        prompts[result["task_id"]].add(walk(result).first_prompt)
    assert len(prompts) == 5
    assert all(len(group) == 1 for group in prompts.values())


def test_delivered_tokens_are_those_in_the_journals(collected: Collected) -> None:
    for result in collected.results:
        forest = recover(collected.journals / f"{result['session_id']}.journal").forest
        sampled = [token for turn in forest.turns for token in turn.sampled.tolist()]
        read = walk(result)
        assert [token for token, trained in zip(read.tokens, read.mask, strict=True) if trained] == sampled


def test_gym_aggregates_our_numbers(collected: Collected) -> None:
    [agent] = collected.aggregates
    assert agent["agent_ref"] == {"name": "polar_agent"}
    assert agent["agent_metrics"]["mean/mask_sample"] == 0.0
    assert agent["agent_metrics"]["mean/delivered_tokens"] > 0.0


def test_no_process_is_left(gym: GymCommand, collected: Collected) -> None:
    assert asyncio.run(collected.hanging.becomes(False))
    assert gym.gone(within=60.0), [" ".join(process.cmdline())[:200] for process in gym.processes()]
