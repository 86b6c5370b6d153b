# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`/tokenize` and `/detokenize`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from nemo_gym_polar.policy.api.conversation import render_prompt
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.api.replies import json_response
from nemo_gym_polar.policy.api.service import PolicyService


async def tokenize(service: PolicyService, request: Request) -> Response:
    """A text under `prompt`, or a conversation under `messages`."""
    fields = await Fields.read(request)
    service.check_model(fields)
    if fields.get("messages") is not None:
        tokens = render_prompt(service, fields)
    else:
        tokens = service.tokenizer.encode(fields.required_text("prompt"))
    strings = [service.vocabulary.text_of(token) for token in tokens] if fields.flag("return_token_strs") else None
    return json_response(
        {"count": len(tokens), "max_model_len": service.limit, "tokens": tokens, "token_strs": strings}
    )


async def detokenize(service: PolicyService, request: Request) -> Response:
    fields = await Fields.read(request)
    service.check_model(fields)
    tokens = fields.tokens("tokens", service.shape.vocab)
    return json_response({"prompt": service.tokenizer.decode(tokens, skip_special_tokens=False)})
