# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Builders turn a forest into traces. `build(forest, "prefix_merging", {...})` is all that most callers need."""

from nemo_gym_polar.forest.builders.base import Build, Builder, Options, Rule
from nemo_gym_polar.forest.builders.registry import build, names, register, resolve

__all__ = ["Build", "Builder", "Options", "Rule", "build", "names", "register", "resolve"]
