# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What stops the server from starting, and what it prints then."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nemo_gym_polar.policy.server import parser
from nemo_gym_polar.policy.serving import StartupError, load_service, serve

HELP = "import sys\nfrom nemo_gym_polar.policy.server import parser\nparser()\nprint('torch' in sys.modules)"


def test_a_busy_port_is_named(policy_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(StartupError, match=f"can't listen on 127.0.0.1:{port}: .*in use; give a free port"):
            serve(parser().parse_args(["--model", str(policy_dir), "--port", port]))


def test_an_impossible_socket_is_named(policy_dir: Path) -> None:
    with pytest.raises(StartupError, match="can't listen on /no/such/place: No such file"):
        serve(parser().parse_args(["--model", str(policy_dir), "--uds", "/no/such/place"]))


def test_an_unfit_length_is_named(policy_dir: Path) -> None:
    with pytest.raises(StartupError, match="max_model_len=99999 does not fit the model; give 1 to 4096"):
        serve(parser().parse_args(["--model", str(policy_dir), "--port", "0", "--max-model-len", "99999"]))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", r"config.json is missing"),
        ("model.safetensors", r"holds neither model.safetensors"),
        ("tokenizer.json", r"tokenizer.json is missing"),
        ("chat_template.jinja", r"chat_template.jinja is missing"),
    ],
)
def test_a_missing_file_is_named(policy_dir: Path, tmp_path: Path, file: str, message: str) -> None:
    directory = tmp_path / "policy"
    shutil.copytree(policy_dir, directory)
    (directory / file).unlink()
    with pytest.raises(StartupError, match=message):
        serve(parser().parse_args(["--model", str(directory), "--port", "0"]))


def test_end_tokens_come_from_either_config(policy_dir: Path, tmp_path: Path) -> None:
    directory = tmp_path / "policy"
    shutil.copytree(policy_dir, directory)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": 7}))
    options = parser().parse_args(["--model", str(directory)])
    assert load_service(options).end_tokens == {7}
    (directory / "generation_config.json").unlink()
    assert load_service(options).end_tokens == set(json.loads((directory / "config.json").read_text())["eos_token_id"])


def test_options_need_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
