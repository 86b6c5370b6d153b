# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the service from the shipped file, from a user's, from options and overrides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.hosting import read_settings
from nemo_gym_polar.rollouts.hosting.settings import HostSettings
from tests.support.commands import run_command


def test_what_is_shipped_is_what_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLAR_CALLBACK_KEY", raising=False)
    shipped, built_in = read_settings(None, [], {}), HostSettings()
    for settings in ("gateway_settings", "rollout_settings", "control_settings"):
        assert getattr(shipped, settings)() == getattr(built_in, settings)(), settings
    assert (shipped.api, shipped.node, shipped.callbacks) == (built_in.api, built_in.node, built_in.callbacks)
    assert (shipped.engine, shipped.join, shipped.store_url) == (None, None, built_in.store_url)


def test_options_and_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLAR_CALLBACK_KEY", "signs")
    options = {"engine": ["http://e:1"], "model": "m", "tokenizer": tmp_path, "port": 0, "admin_token": "t"}
    settings = read_settings(None, ["rollouts.run_workers=9", "api.host=0.0.0.0"], options)
    assert settings.engine
    assert (settings.engine.urls, settings.engine.tokenizer) == (("http://e:1",), str(tmp_path))
    assert (settings.rollout_settings().run_workers, settings.api.host, settings.api.port) == (9, "0.0.0.0", 0)
    assert settings.gateway_settings().models == ("m",)
    assert settings.callbacks.key
    assert settings.callbacks.key.get_secret_value() == "signs"
    assert "signs" not in repr(settings)
    assert "'t'" not in repr(settings)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [serve, _self_]\nrollouts: {run_workers: 7}\n")
    settings = read_settings(str(path), ["node.node_id=x"], {})
    assert (settings.rollout_settings().run_workers, settings.rollout_settings().init_workers) == (7, 2)
    assert settings.node.node_id == "x"


def test_where_a_node_listens(tmp_path: Path) -> None:
    options = {"join": "http://s:1", "engine": ["http://e:1"], "mode": "chat", "host": "127.0.0.2", "port": 7}
    with pytest.raises(UsageError, match="name this one with --node-id"):
        read_settings(None, [], options)
    settings = read_settings(None, [], {**options, "node_id": "far"})
    assert (settings.node.host, settings.node.port, settings.api.port) == ("127.0.0.2", 7, 8080)


@pytest.mark.parametrize(
    ("config", "overrides", "options", "words"),
    [
        (None, ["rollouts.run_worker=9"], {}, "did you mean rollouts.run_workers"),
        (None, ["rollouts.run_workers=0"], {}, "rollouts.run_workers=0"),
        (None, ["api.host=0.0.0.0"], {}, "set token"),
        (None, ["node.host=10.0.0.1"], {}, "set token"),
        (None, ["node.host=0.0.0.0"], {"admin_token": "t"}, "set node.public_url"),
        (None, [], {"join": "http://s:1"}, "a node needs an engine"),
        (None, [], {"join": "http://s:1", "service": True}, "--join is for a node"),
        (None, ["join=nowhere"], {}, "join 'nowhere' does not begin with http"),
        (None, [], {"uds": Path("x")}, "--uds is for a gateway by itself"),
        (None, [], {"engine": ["http://e:1"]}, "engine.tokenizer is not set"),
        (None, ["node.node_id=../x"], {}, "node.node_id"),
        ("mistyped.yaml", [], {}, "did you mean rollouts.run_workers"),
        ("nowhere.yaml", [], {}, "there is no file nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_named(
    config: str | None, overrides: list[str], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    if config == "mistyped.yaml":
        path = tmp_path / config
        path.write_text("defaults: [serve, _self_]\nrollouts: {run_workerz: 7}\n")
        config = str(path)
    with pytest.raises(UsageError) as refused:
        read_settings(config, overrides, options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["serve"], 2, "--engine is missing"),
        (["serve", "--engine", "nowhere"], 2, "--engine 'nowhere' does not begin with http:// or https://"),
        (["serve", "--engine", "http://127.0.0.1:1", "--directory", "x"], 2, "give --service as well"),
        (["serve", "--service", "--store", "mysql://x/y", "--port", "0"], 1, "use sqlite or postgresql"),
        (["submit", "nowhere.json"], 2, "there is no file nowhere.json"),
        (["submit", "bad.yaml"], 2, "is neither JSON nor YAML"),
        (["submit", "list.yaml"], 2, "is no task"),
        (["status", "--url", "http://127.0.0.1:1"], 1, "no answer from the service at http://127.0.0.1:1: "),
        (["status", "--url", "nonsense"], 2, "--url 'nonsense' does not begin with http:// or https://"),
        (["nodes", "fly"], 2, "polar nodes fly is no command"),
        (["nodes", "drain"], 2, "needs the node's id"),
    ],
)
def test_commands_say_what_is_wrong_in_one_line(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("{a: [")
    (tmp_path / "list.yaml").write_text("- 1\n")
    ended = run_command(tmp_path, "polar", *arguments)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert words in ended.stderr
