# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Any other server with OpenAI's API that can tell token ids, asked in the known ways and read wherever it tells them.

Chat mode by `/v1/chat/completions`, tokens mode by `/v1/completions` with a prompt of token ids. OpenAI's own service
tells no ids, so it can be a helper (`helpers.py`) but no policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nemo_gym_polar.engines.chat_server import CHAT_PATH
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.engines.vllm import VLLM

_NO_IDS = (
    "the server must honour return_token_ids or an equivalent; OpenAI's own service and many proxies do not, "
    "and serve as helper models only"
)


class OpenAI(VLLM):
    """Both modes, as far as the server goes."""

    KIND = "openai"
    CHAT = Source(KIND, CHAT_PATH, _NO_IDS)
    ASK: ClassVar[Mapping[str, Any]] = {
        "logprobs": True,
        "return_token_ids": True,
        "return_prompt_token_ids": True,
        "return_tokens_as_token_ids": True,
    }

    def __init__(self, replicas: Replicas, *, model: str, stop_token_ids: Sequence[int] = ()) -> None:
        super().__init__(replicas, model=model, stop_token_ids=stop_token_ids)
        self._has_generate = False
