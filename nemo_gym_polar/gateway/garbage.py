# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How often a server looks for garbage: a full look at all that it has loaded would hold up every call."""

from __future__ import annotations

import gc

_NEW = 20_000  # objects before circles are looked for among them; a request has thousands, in no circle


def settle() -> None:
    """To be called once, when all is loaded: what is there now stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW, 20, 20)
