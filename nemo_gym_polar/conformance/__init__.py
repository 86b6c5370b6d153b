# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Does a gateway speak like the real providers? The providers' own clients are the judges.

Every case holds for any model behind the gateway: what is checked is the wire, never what was said.
"""

from nemo_gym_polar.conformance.case import Case, ConformanceError, Subject
from nemo_gym_polar.conformance.run import CASES, Outcome, run_cases

__all__ = ["CASES", "Case", "ConformanceError", "Outcome", "Subject", "run_cases"]
