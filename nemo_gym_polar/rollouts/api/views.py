# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Records and traces as the reference system's answers, with our fields after its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.conversations import Said, read_conversations
from nemo_gym_polar.rollouts.task import SessionStatus

STATUS: Mapping[SessionStatus, str] = {
    SessionStatus.QUEUED: "REGISTERED",
    SessionStatus.INIT: "INITIALIZING",
    SessionStatus.READY: "READY",
    SessionStatus.RUNNING: "RUNNING",
    SessionStatus.POSTRUN: "POST_RUN",
    SessionStatus.COMPLETED: "COMPLETED",
    SessionStatus.TIMEOUT: "TIMEOUT",
    SessionStatus.ERROR: "ERROR",
    SessionStatus.CANCELLED: "ERROR",
}
TIMING: Mapping[str, str] = {
    "queued": "register_to_init_queue_ms",
    "init": "init_ms",
    "ready": "ready_queue_ms",
    "running": "run_ms",
    "finished": "postrun_queue_ms",
    "postrun": "postrun_ms",
}
PARTS: Mapping[str, str] = {"evaluate": "eval_ms"}
"""Times that are part of a stage's; those that the reference system doesn't have keep our name."""
STAGES: Mapping[str, str] = {
    "queued": "init_queue_depth",
    "init": "init_inflight",
    "ready": "ready_depth",
    "running": "run_inflight",
    "finished": "postrun_queue_depth",
    "postrun": "postrun_inflight",
}
OWN = ("sample", "attempt", "current", "usable", "lost", "reward", "first_prompt")
COPIED = ("index", "kind", "edge", "weight", "group", "turns", "versions", "parent", "shared_prefix", "digest")


def task_view(
    task: TaskRecord, results: Sequence[Mapping[str, Any]], mismatches: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "status": task.state,
        "total_sessions": task.total_sessions,
        "completed_sessions": task.ended_sessions,
        "results": results,
        "result_paths": [result["result_path"] for result in results if result["result_path"]],
        "usable_sessions": task.usable_sessions,
        "selected_samples": task.selected_samples,
        "first_prompt_mismatches": mismatches,
        "created": task.created,
        "ended": task.ended,
        "error": task.error,
    }


def task_line(task: TaskRecord) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "status": task.state,
        "harness": task.request and task.request.agent.harness,
        "total_sessions": task.total_sessions,
        "completed_sessions": task.ended_sessions,
        "usable_sessions": task.usable_sessions,
        "created_at": task.created,
        "updated_at": task.ended or task.created,
        "error": task.error,
    }


def session_view(record: SessionRecord, traces: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """`traces` are those of `read_traces`; without them a trajectory has none."""
    result = record.result or {}
    seconds = result.get("timing", {})
    return {
        "session_id": record.session_id,
        "task_id": record.task_id,
        "status": STATUS[record.status],
        "trajectory": trajectory(record, traces) if record.status.final else None,
        "timing": timing(seconds),
        "node_id": record.node_id,
        "error": record.error,
        "metadata": result.get("metadata", {}),
        "state": record.status,
        **{name: getattr(record, name) for name in OWN},
        "dropped": result.get("dropped", {}),
        "created": record.created,
        "updated": record.updated,
        "result_path": record.result_path,
    }


def trajectory(record: SessionRecord, traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    result = record.result or {}
    about = {"reward": record.reward, "dropped": result.get("dropped", {}), "traces": result.get("traces", [])}
    return {"status": STATUS[record.status], "metadata": about, "traces": traces, "error": record.error}


def timing(seconds: Mapping[str, float]) -> dict[str, float]:
    names = {**{part: f"{part}_ms" for part in seconds}, **PARTS, **TIMING}
    found = {names[part]: round(1000 * value, 3) for part, value in seconds.items()}
    return {**found, "e2e_ms": round(1000 * sum(seconds[stage] for stage in TIMING if stage in seconds), 3)}


def read_traces(path: Path) -> list[dict[str, Any]]:
    """The traces of a file that `results.write_result` wrote. Raises `OSError`."""
    with path.open("rb") as file:
        return trace_views([orjson.loads(line) for line in file])


def trace_views(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of all traces of a session."""
    said = read_conversations([row.get("conversation") for row in rows])
    return list(map(trace_view, rows, said))


def trace_view(row: Mapping[str, Any], said: Said) -> dict[str, Any]:
    ids, mask, logprobs = row["token_ids"], np.asarray(row["loss_mask"], np.int8), row["logprobs"]
    first = int(mask.argmax()) if mask.any() else len(ids)
    return {
        "prompt_ids": ids[:first],
        "response_ids": ids[first:],
        "loss_mask": mask[first:],
        "response_logprobs": logprobs[first:],
        "prompt_messages": said.prompt,
        "response_messages": said.response,
        "tools": said.tools,
        "finish_reason": row["finish_reason"],
        "reward": row["reward"],
        "metadata": row["metadata"],
        **{name: row.get(name) for name in COPIED},
    }


def node_view(node: NodeRecord) -> dict[str, Any]:
    workers = {f"max_{stage}_workers": node.metadata.get(f"max_{stage}_workers", 1) for stage in _POOLS}
    metrics = {field: node.stages.get(stage, 0) for stage, field in STAGES.items()}
    return {
        "node_id": node.node_id,
        "gateway_url": node.url,
        **workers,
        "metrics": metrics,
        "dispatch_reservations": 0,
        "healthy": node.state != "lost",
        "draining": node.state == "draining",
        "heartbeat_interval_seconds": node.metadata.get("heartbeat_interval_seconds", 30),
        "last_heartbeat": datetime.fromtimestamp(node.seen, UTC).isoformat(),
        **{name: getattr(node, name) for name in ("kind", "state", "capacity", "sessions", "stages", "pressure")},
        "policy_version": node.policy_version,
    }


_POOLS = ("init", "run", "postrun")
