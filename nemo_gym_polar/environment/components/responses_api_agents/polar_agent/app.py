# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What `gym` starts as agent `polar_agent`."""

from nemo_gym_polar.environment.agent import PolarAgent

if __name__ == "__main__":
    PolarAgent.run_webserver()
