# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One `/run`: a row in, a result out, whatever happens in between."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from nemo_gym_polar.environment.client import ResourcesClient, ResourcesServerError
from nemo_gym_polar.environment.protocol import Verify
from nemo_gym_polar.environment.responses import empty_response
from nemo_gym_polar.environment.result import Result, result
from nemo_gym_polar.environment.rows import RowError, task_request
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.scoring import MASKED
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus

logger = logging.getLogger(__name__)


async def run_row(
    service: RolloutService, client: ResourcesClient, row: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Result:
    """The result of one rollout. It never raises: one error ends a collection, or a training run."""
    try:
        task = task_request(row, defaults)
        session = (await service.run(task)).sessions[0]
        return await _verified(client, row, session)
    except (RowError, ValidationError) as error:
        return _failed(row, "bad_row", str(error)) | {"_ng_failure_terminal": True}
    except RolloutError as error:
        return _failed(row, "bad_task", str(error))
    except ResourcesServerError as error:
        return _failed(row, "resources_server", str(error))
    except Exception as error:
        logger.exception("a rollout failed in a way that nobody thought of")
        return _failed(row, "unexpected", f"{type(error).__name__}: {error}")


async def _verified(client: ResourcesClient, row: Mapping[str, Any], session: SessionResult) -> Result:
    ask = Verify(
        responses_create_params=row["responses_create_params"],
        session_id=session.session_id,
        task_id=session.task_id,
        status=session.status,
        reward=session.reward,
        masked=MASKED in session.dropped,
        error=session.error,
        timing=session.timing,
        evaluation=session.metadata.get("evaluation", {}),
    )
    if not session.session_id:  # it was never opened, so the resources server knows nothing of it
        return _without_tokens(ask, f"rollout_{session.status.lower()}")
    return await client.verify(ask)


def _failed(row: Mapping[str, Any], failure: str, error: str) -> Result:
    given = row.get("responses_create_params") or {}
    params = {"input": "", **given} if isinstance(given, Mapping) else {"input": ""}
    task = row.get("task")
    task_id = str(task.get("task_id", "")) if isinstance(task, Mapping) else ""
    ask = Verify(
        responses_create_params=params,
        session_id="",
        task_id=task_id,
        status=SessionStatus.ERROR,
        reward=0.0,
        masked=True,
        error=error,
    )
    return _without_tokens(ask, failure)


def _without_tokens(ask: Verify, failure: str) -> Result:
    body = empty_response(model="", created=time.time(), identity=ask.session_id)
    return result(ask, body, counts={}, dropped={}, failure=failure)
