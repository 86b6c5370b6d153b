# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What one sandbox may use."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MIB = 1 << 20
Positive = Annotated[int, Field(gt=0)]


class Limits(BaseModel):
    """Bounds of one sandbox. Memory, file size and open files count per process; the rest per sandbox.

    `workspace_mb` and `scratch_mb` (home, /tmp, /dev/shm: each) are sizes of tmpfs, so of memory, and exist only under
    bubblewrap. `output_mb` is what a command may print before it is killed, `log_mb` how much of that is kept on disk.
    `threads` is the kernel's own limit per user, against fork bombs that outrun the count of `processes`: where this
    process is root, all sandboxes share it; the local runtime doesn't set it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workspace_mb: Positive = 512
    scratch_mb: Positive = 256
    file_mb: Positive = 512
    memory_mb: Positive = 8192
    output_mb: Positive = 256
    log_mb: Positive = 16
    processes: Positive = 512
    threads: Positive = 16384
    open_files: Positive = 4096

    @property
    def log_bytes(self) -> int:
        return self.log_mb * MIB

    def supervisor(self, *, own_user: bool) -> dict[str, Any]:
        """The part that the supervisor enforces. `own_user`: nobody else's processes run as the sandbox's user."""
        resources = {
            "RLIMIT_CORE": 0,
            "RLIMIT_DATA": self.memory_mb * MIB,
            "RLIMIT_FSIZE": self.file_mb * MIB,
            "RLIMIT_NOFILE": self.open_files,
        }
        if own_user:
            resources["RLIMIT_NPROC"] = self.threads
        return {"limits": resources, "max_processes": self.processes, "max_output": self.output_mb * MIB}
