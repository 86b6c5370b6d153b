# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What `gym` starts as resources server `polar`."""

from nemo_gym_polar.environment.resources import PolarResourcesServer

if __name__ == "__main__":
    PolarResourcesServer.run_webserver()
