# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the control plane raises; each says in one line what to do instead."""

from __future__ import annotations


class ControlError(Exception):
    """The base of what a caller of the control plane did wrong, or has to wait for."""


class TaskConflictError(ControlError):
    """The task id is taken: by other content, or by a task that was cancelled."""


class NodeConflictError(ControlError):
    """The node id is the service's own node's."""


class UnknownTaskError(ControlError, LookupError):
    """No task has this id."""


class UnknownSessionError(ControlError, LookupError):
    """No session has this id."""


class UnknownNodeError(ControlError, LookupError):
    """No node has this id."""


class NoTracesError(ControlError, LookupError):
    """The session has no stored traces (yet)."""


class BackPressureError(ControlError):
    """Too many sessions wait already; ask again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
