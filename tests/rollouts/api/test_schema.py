# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the OpenAPI page allows, and much that it doesn't: never a server error, and always the promised shapes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.schemas import BaseSchema

from tests.support.control_api import TOKEN, desk

NAMES = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
checks.load_all_checks()
CHECKS = checks.CHECKS.get_by_names(NAMES)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """On a loop of its own, for the examples are made in none."""
    loop = asyncio.new_event_loop()
    stop, url = asyncio.Event(), loop.create_future()
    directory = tmp_path_factory.mktemp("service")

    async def serve(directory: Path) -> None:
        async with desk(directory) as at:
            url.set_result(at.url)
            await stop.wait()

    def run() -> None:
        loop.run_until_complete(serve(directory))

    thread = threading.Thread(target=run)
    thread.start()
    yield asyncio.run_coroutine_threadsafe(asyncio.wait_for(url, 30), loop).result(40)
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


@pytest.fixture(scope="module")
def page(service: str) -> BaseSchema:
    found = schemathesis.openapi.from_url(f"{service}/openapi.json")
    return found.exclude(path="/events")  # it never ends


def test_every_operation(page: BaseSchema) -> None:
    operations = [found.ok() for found in page.get_all_operations()]
    assert len(operations) > 15
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            database=None,
        )
        def ask(case: schemathesis.Case) -> None:
            case.call_and_validate(headers={"authorization": f"Bearer {TOKEN}"}, checks=CHECKS, timeout=30)

        ask()
