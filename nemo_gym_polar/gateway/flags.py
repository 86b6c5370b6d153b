# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Is a recorded log-probability that of the draw? Where it is not, the turn is flagged, and never trained on.

Penalties, logit bias and forced tool choices need no flag: the gateway asks engines for none of them. A seed decides
which token is drawn, not how likely it was.
"""

from __future__ import annotations

from nemo_gym_polar.engines.base import Logprobs
from nemo_gym_polar.forest.turn import Flag
from nemo_gym_polar.gateway.settings import SamplingProfile


def sampling_flags(profile: SamplingProfile, logprobs: Logprobs, *, constrained: bool) -> frozenset[Flag]:
    """What a profile does to a turn whose engine reports `logprobs`; `constrained` if a grammar masked tokens."""
    flags = set()
    # Nothing is drawn at temperature 0, and engines report such answers as if at 1.
    if profile.temperature == 0.0 or (logprobs == "raw" and profile.temperature != 1.0):
        flags.add(Flag.TEMPERATURE)
    if logprobs != "processed" and (profile.top_p < 1.0 or profile.top_k > 0):
        flags.add(Flag.TRUNCATED)
    if constrained:
        flags.add(Flag.CONSTRAINED)
    return frozenset(flags)
