# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A model directory without weights: tokenizer and chat template, made in a moment."""

from __future__ import annotations

from pathlib import Path

from nemo_gym_polar.policy.tokenizer import chat_template, make_tokenizer, save_tokenizer

_WORDS = (
    "You are an expert coding assistant. Use bash for file operations like ls, rg, find. "
    "Create the file hello.txt in the current directory and say Done. "
    '{"type": "function", "function": {"name": "bash", "description": "Run a command", "parameters": {}}} '
    "<function=bash>\n<parameter=command>\ntouch hello.txt\n</parameter>\n</function>\nsystem\nuser\nassistant\n"
)


def make_model(directory: Path) -> Path:
    save_tokenizer(make_tokenizer([_WORDS * 3, chat_template()], vocab_size=1024), directory)
    return directory
