# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from pydantic import ValidationError

from nemo_gym_polar.environment import COMPONENTS
from nemo_gym_polar.environment.settings import AgentSettings, ResourcesSettings


def shipped(**policy: Any) -> dict[str, Any]:
    """The shipped config as the servers see it, with what the command line adds."""
    config = OmegaConf.merge(OmegaConf.load(COMPONENTS / "environments/polar/config.yaml"), policy)
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def resources(**policy: Any) -> dict[str, Any]:
    block: dict[str, Any] = shipped(**policy)["polar"]["resources_servers"]["polar"]
    return block


ONE = {"policy_base_url": "http://127.0.0.1:1/v1", "policy_model_name": "m", "policy_api_key": "k"}
TOKENIZER = {"polar": {"resources_servers": {"polar": {"engine": {"tokenizer": "/model"}}}}}


def test_the_shipped_config_is_one_of_ours() -> None:
    settings = ResourcesSettings.model_validate(resources(**ONE, **TOKENIZER))
    assert settings.engine.urls == ("http://127.0.0.1:1/v1",)
    assert (settings.engine.model, settings.engine.api_key) == ("m", "k")
    assert settings.gateway().models == ("m",)
    agent = AgentSettings.model_validate(shipped(**ONE)["polar_agent"]["responses_api_agents"]["polar_agent"])
    assert agent.task["agent"]["harness"] == "pi"


def test_nemo_rl_gives_a_list_of_engines() -> None:
    urls = ["http://10.0.0.1:1/v1", "http://10.0.0.2:1/v1"]
    settings = ResourcesSettings.model_validate(resources(**{**ONE, "policy_base_url": urls}, **TOKENIZER))
    assert settings.engine.urls == tuple(urls)


def test_no_key_is_needed() -> None:
    policy = {key: value for key, value in ONE.items() if key != "policy_api_key"}
    assert ResourcesSettings.model_validate(resources(**policy, **TOKENIZER)).engine.api_key is None


def test_journals_go_to_the_user_s_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    settings = ResourcesSettings.model_validate(resources(**ONE, **TOKENIZER))
    assert settings.gateway().journals == tmp_path / "nemo-gym-polar" / "gym" / "journals"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directory": "results"}, "directory='results' is relative to the server's own directory"),
        ({"num_workers": 2}, "num_workers=2: sessions live in one process"),
        ({"engine": {"urls": ["u"], "model": "m"}}, "engine.tokenizer is not set"),
    ],
)
def test_bad_resources_settings_say_what_to_do(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ResourcesSettings.model_validate({**resources(**ONE, **TOKENIZER), **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_workers": 2}, "num_workers=2"),
        ({"task": {"time_limit": 3}}, "time_limit"),
        ({"rollouts": {"run_workers": 0}}, "run_workers"),
        ({"rollouts": {"directory": "here"}}, "rollouts.directory='here' is relative"),
    ],
)
def test_bad_agent_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AgentSettings.model_validate(change)
