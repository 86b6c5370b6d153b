# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sampling parameters of a request, under OpenAI's and vLLM's names."""

from __future__ import annotations

from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.sampling import SamplingParams

MOST_LOGPROBS = 20
MOST_CHOICES = 128
_COLDEST = 1e-5  # vLLM samples greedily below this temperature

# Parameters that change the distribution in ways that are not implemented; the first value listed is neutral.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "logit_bias": ({},),
    "allowed_token_ids": (),
    "bad_words": ([],),
    "use_beam_search": (False,),
    "best_of": (1,),
    "suffix": ("",),
    "structured_outputs": ({},),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
}


def sampling_params(
    fields: Fields, *, max_tokens: int, top_logprobs: int = 0, prompt_logprobs: int | None = None
) -> SamplingParams:
    """Read what all endpoints share."""
    for name, neutral in _NEUTRAL.items():
        fields.refuse(name, *neutral, remedy=f"leave it {neutral[0]!r}" if neutral else "leave it out")
    temperature = fields.number("temperature", low=0.0)
    top_p = fields.number("top_p", low=0.0, high=1.0)
    if top_p == 0.0:
        raise fields.wrong("top_p", "a number above 0 and at most 1")
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=1.0 if temperature is None else temperature if temperature >= _COLDEST else 0.0,
        top_p=1.0 if top_p is None else top_p,
        top_k=max(fields.integer("top_k", low=-1) or 0, 0),
        seed=fields.integer("seed"),
        stop=fields.texts("stop"),
        stop_token_ids=frozenset(_stop_tokens(fields)),
        include_stop_text=fields.flag("include_stop_str_in_output"),
        ignore_end=fields.flag("ignore_eos"),
        min_tokens=fields.integer("min_tokens", low=0, high=max_tokens) or 0,
        top_logprobs=top_logprobs,
        prompt_logprobs=prompt_logprobs,
    )


def answer_room(fields: Fields, names: tuple[str, ...], *, prompt: int, limit: int, default: int | None = None) -> int:
    """How many tokens may be sampled: the first of `names` that is given, else `default`, else all that fit."""
    given = next((name for name in names if fields.get(name) is not None), None)
    room = limit - prompt
    asked = default if given is None else fields.integer(given, low=0)
    if room < (1 if asked is None else asked):
        raise _overflow(given, prompt=prompt, asked=asked, limit=limit)
    return room if asked is None else asked


def count_of_logprobs(fields: Fields, name: str) -> int | None:
    """A number of likeliest tokens to report."""
    return fields.integer(name, low=0, high=MOST_LOGPROBS)


def count_of_choices(fields: Fields) -> int:
    return fields.integer("n", low=1, high=MOST_CHOICES) or 1


def _overflow(given: str | None, *, prompt: int, asked: int | None, limit: int) -> ApiError:
    wish = f"you requested {asked} output tokens and your" if asked is not None and given else "your"
    return ApiError(
        f"This model's maximum context length is {limit} tokens. However, {wish} prompt contains {prompt} input "
        "tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
        param=given if prompt < limit else None,
    )


def _stop_tokens(fields: Fields) -> list[int]:
    value = fields.get("stop_token_ids")
    if value is None:
        return []
    if not isinstance(value, list) or not all(type(token) is int and token >= 0 for token in value):
        raise fields.wrong("stop_token_ids", "an array of token ids")
    return value
