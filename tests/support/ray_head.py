# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A small Ray cluster for NeMo Gym: no dashboard, on the loopback interface, gone when stdin closes.

The one that NeMo Gym starts by itself runs a dozen more processes and costs twice the time.
"""

from __future__ import annotations

import sys

import ray


def main(directory: str) -> None:
    ray.init(
        include_dashboard=False,
        num_cpus=1,
        object_store_memory=80_000_000,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
        _temp_dir=directory,
    )
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
