# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What all tests share: quiet threads, no hub, and one way for hypothesis to search."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

# A shared machine is no place to judge an example by its time. In CI a run must find the same twice.
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")
