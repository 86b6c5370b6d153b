# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks: results are told to whoever asked for them, at least once, signed, also over a restart."""
