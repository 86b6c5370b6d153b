# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One token for a rollout that has none.

One row without a sampled token ends a NeMo RL run. So where the harness never got an answer, the policy is asked for a
single token on the bare instruction, in a session of its own: a true sample in its true context, in a result that is
flagged as not to be trained on. Its first prompt is nobody else's, so it joins no GRPO group either.
"""

from __future__ import annotations

import logging

from nemo_gym_polar.chat import Conversation, Message, Request, Sampling, Text
from nemo_gym_polar.dialects import chat
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.gateway.call import complete
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.session import Call

logger = logging.getLogger(__name__)


async def sample_placeholder(gateway: Gateway, session_id: str, text: str) -> Forest | None:
    """A forest of one turn and one token, or None where the engine gives not even that."""
    session = await gateway.open(f"{session_id}-placeholder", metadata={"placeholder_for": session_id})
    conversation = Conversation((Message("user", (Text(text),)),))
    request = Request(chat.NAME, session.model, conversation, Sampling(max_tokens=1))
    try:
        await complete(gateway, session, chat, request, Call(chat.RESPONSE_ID_PREFIX))
    except (CallError, EngineError, JournalError) as error:
        logger.warning("no placeholder for session %s: %s", session_id, error)
        return None
    finally:
        forest = await gateway.finish(session.id, {"placeholder_for": session_id})
    return forest
