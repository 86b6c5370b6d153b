# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Cases that the `openai` client runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import openai

from nemo_gym_polar.conformance.case import TIMEOUT, Subject

Run = Callable[[Subject], str]


def plain(work: Callable[[openai.OpenAI, str], str]) -> Run:
    """A case from what a client does with a model of this name."""

    def run(subject: Subject) -> str:
        with openai.OpenAI(base_url=f"{subject.url}/v1", api_key=subject.key, timeout=TIMEOUT) as one:
            return work(one, subject.model)

    return run


def in_loop(work: Callable[[openai.AsyncOpenAI, str], Coroutine[Any, Any, str]]) -> Run:
    """The same with the asynchronous client."""

    async def run(subject: Subject) -> str:
        async with openai.AsyncOpenAI(base_url=f"{subject.url}/v1", api_key=subject.key, timeout=TIMEOUT) as one:
            return await work(one, subject.model)

    return lambda subject: asyncio.run(run(subject))
