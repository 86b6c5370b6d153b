# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The node protocol as JSON: what goes between the service and a node on another machine.

Traces travel as they are written to files, so what arrives equals what was built, bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from nemo_gym_polar.export.jsonl import decode_trace, encode_trace
from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, Report
from nemo_gym_polar.rollouts.results import without_details
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus, TaskRequest


class Start(BaseModel):
    """An assignment."""

    model_config = ConfigDict(extra="forbid")

    session_id: str
    request: TaskRequest
    sample: int
    attempt: int = 1

    def assignment(self) -> Assignment:
        return Assignment(self.session_id, self.request, self.sample, self.attempt)


class Names(BaseModel):
    model_config = ConfigDict(extra="forbid")

    session_ids: list[str]


class Pause(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seconds: float


class Resume(BaseModel):
    model_config = ConfigDict(extra="forbid")

    policy_version: str | None = None


def encode_start(assignment: Assignment) -> dict[str, Any]:
    return {
        "session_id": assignment.session_id,
        "request": assignment.request.model_dump(mode="json"),
        "sample": assignment.sample,
        "attempt": assignment.attempt,
    }


def encode_report(report: Report) -> dict[str, Any]:
    result = report.result and encode_result(report.result)
    return {"cursor": report.cursor, "session_id": report.session_id, "status": report.status, "result": result}


def sendable(report: Report) -> Report:
    """Without its result's details where they are no JSON: they must keep back neither the tokens nor other reports."""
    try:
        orjson.dumps(encode_report(report), option=orjson.OPT_SERIALIZE_NUMPY)
    except (TypeError, ValueError) as error:
        assert report.result
        return replace(report, result=without_details(report.result, error))
    return report


def decode_report(row: Mapping[str, Any]) -> Report:
    result = None if row["result"] is None else decode_result(row["result"])
    return Report(row["cursor"], row["session_id"], SessionStatus(row["status"]), result)


def encode_result(result: SessionResult) -> dict[str, Any]:
    """Arrays are left to orjson."""
    fields = result.model_dump(mode="json", exclude={"traces", "conversations"})
    traces = [encode_trace(trace) for trace in result.traces]
    return {**fields, "traces": traces, "conversations": result.conversations}


def decode_result(row: Mapping[str, Any]) -> SessionResult:
    return SessionResult(**{**row, "traces": [decode_trace(trace) for trace in row["traces"]]})


def encode_load(load: Load) -> dict[str, Any]:
    return {**asdict(load), "stages": dict(load.stages)}


def decode_load(row: Mapping[str, Any]) -> Load:
    return Load(**row)
