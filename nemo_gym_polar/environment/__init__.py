# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The NeMo Gym face. `COMPONENTS` is the component root for `NEMO_GYM_EXTRA_ROOTS`."""

from pathlib import Path

COMPONENTS = Path(__file__).with_name("components")
