# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout service over HTTP: the reference system's endpoints, and ours beside them."""
