# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Requests for the OpenAPI page."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "task_id": "hello-1",
    "instruction": "Create hello.txt in the current directory, with the word hi in it.",
    "num_samples": 8,
    "timeout_seconds": 600,
    "agent": {"harness": "pi"},
    "runtime": {"backend": "bubblewrap", "files": {"README": "A task.\n"}},
    "builder": {"strategy": "prefix_merging"},
    "evaluator": {"strategy": "command", "config": {"command": "grep -qx hi hello.txt"}},
    "metadata": {"group_id": "hello", "policy_version": 3, "rollout_step": 12},
}
PREPARED: dict[str, Any] = {
    "task_id": "calculator-1",
    "instruction": "Make the tests pass.",
    "num_samples": 4,
    "dispatch_priority": 50,
    "early_stop_min_usable_sessions": 3,
    "timeout_seconds": 1200,
    "agent": {"harness": "shell", "custom_shell": {"command": "./agent.sh", "cwd": "/testbed"}},
    "runtime": {
        "backend": "bubblewrap",
        "workdir": "/testbed",
        "prepare": [{"type": "exec", "command": "git init -q && git commit -q --allow-empty -m first"}],
    },
    "evaluator": {"strategy": "command", "config": {"command": "./check.sh"}, "refresh_runtime": True},
    "callback_url": "http://127.0.0.1:9000/results",
    "metadata": {"agent_timeout": 600},
}
SUBMIT: dict[str, Any] = {
    "requestBody": {
        "content": {
            "application/json": {
                "examples": {
                    "small": {"summary": "eight samples of one task", "value": SMALL},
                    "prepared": {"summary": "a prepared sandbox, early stop and a callback", "value": PREPARED},
                }
            }
        }
    }
}
