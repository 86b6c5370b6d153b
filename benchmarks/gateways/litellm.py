# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""LiteLLM's proxy, one worker. It translates and routes; it records no tokens."""

from __future__ import annotations

import json

from peers import PEERS

from gateways.base import Gateway, Place
from gateways.floors import IDS


class LiteLLM(Gateway):
    name, title, keeps = "litellm", "litellm 1.106.2, one worker", "nothing"
    peer = "litellm"
    slow = True

    def command(self, place: Place) -> list[str]:
        upstream = {"model": "openai/m", "api_base": f"{place.engine}/v1", "api_key": "none", "extra_body": IDS}
        config = place.scratch / "config.yaml"
        config.write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": upstream}]}))
        where = ["--host", "127.0.0.1", "--port", str(place.port), "--num_workers", "1"]
        return [PEERS["litellm"].program("litellm"), "--config", str(config), "--telemetry", "False", *where]

    def environment(self, place: Place) -> dict[str, str]:
        open_to_all = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        return {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", **open_to_all}
