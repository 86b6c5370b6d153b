# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning on unmodified coding agents: gateway, token forest, rollouts, NeMo Gym environment."""

__version__ = "0.1.0"
