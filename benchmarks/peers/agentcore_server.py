# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A program around agentcore-rl-toolkit's gateway, which is a library; runs in its environment.

`python agentcore_server.py ENGINE_URL TOKENIZER_DIRECTORY PORT`. `POST /open/SESSION` makes a session.
"""

from __future__ import annotations

import sys

from agentcore_rl_toolkit.rollout_gateway import HfTemplateRenderer, RolloutGateway
from agentcore_rl_toolkit.rollout_gateway.parsing import parse_tool_uses
from agentcore_rl_toolkit.rollout_gateway.sampling_backends.vllm_http import VllmHttpBackend
from aiohttp import web
from transformers import AutoTokenizer


def main(engine: str, directory: str, port: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(directory)
    renderer = HfTemplateRenderer(
        tokenizer, tool_parser=parse_tool_uses, chat_template_kwargs={"enable_thinking": False}
    )
    gateway = RolloutGateway(
        backend=VllmHttpBackend(engine), renderer=renderer, tokenizer=tokenizer, adapters=["openai"]
    )

    async def open_session(request: web.Request) -> web.Response:
        gateway.create_session(request.match_info["session"])
        return web.json_response({})

    gateway.app.router.add_post("/open/{session}", open_session)
    web.run_app(gateway.app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
