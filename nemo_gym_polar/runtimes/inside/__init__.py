# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What runs inside a sandbox. Standard library and relative imports only: the rest of the package is not there."""
