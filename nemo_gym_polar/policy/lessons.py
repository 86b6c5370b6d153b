# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Chats as token ids and what is to be learned of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from renderers.base import Renderer  # type: ignore[import-untyped]  # it has no py.typed
from renderers.configs import Qwen35RendererConfig  # type: ignore[import-untyped]  # see above
from renderers.qwen35 import Qwen35Renderer  # type: ignore[import-untyped]  # see above
from tokenizers import Tokenizer

from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.policy.synthetic import Chat

NOISE_LENGTHS = (0, 0, 0, 0, 30, 100)
"""How many tokens without meaning to put before a chat: what a harness says there is unknown."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Token ids [T] and which of them the policy is to say [T]."""

    ids_T: NDArray[np.int64]
    learned_T: NDArray[np.bool_]


def policy_renderer(tokenizer: Tokenizer) -> Renderer:
    """The renderer of the policy's chat template, thinking off."""
    return Qwen35Renderer(FileTokenizer(tokenizer, "policy"), Qwen35RendererConfig(enable_thinking=False))


class Lessons:
    """Draws chats and encodes them; `reach` is the policy's receptive field."""

    def __init__(self, tokenizer: Tokenizer, *, reach: int, seed: int) -> None:
        self._renderer = policy_renderer(tokenizer)
        self._reach = reach
        self._generator = random.Random(seed)
        self._think = np.array(tokenizer.encode("<think>\n\n</think>\n\n").ids)
        self._words = sorted(set(range(tokenizer.get_vocab_size())) - set(tokenizer.get_added_tokens_decoder()))

    def batch(self, make: Callable[[random.Random], Chat], count: int, *, noise: bool) -> list[Lesson]:
        """`count` lessons, shortest first."""
        lessons = [self._encode(make(self._generator), noise=noise) for _ in range(count)]
        return sorted(lessons, key=lambda lesson: len(lesson.ids_T))

    def _encode(self, chat: Chat, *, noise: bool) -> Lesson:
        rendered = self._renderer.render(chat.messages, tools=chat.tools)
        ids, learned = np.array(rendered.token_ids), np.array(rendered.sampled_mask)
        # The prompt ends with an empty thought; the policy never says it.
        for start in np.flatnonzero(learned & (ids == self._think[0])):
            learned[start : start + len(self._think)] = False
        before = self._generator.choices(self._words, k=self._generator.choice(NOISE_LENGTHS)) if noise else []
        ids = np.concatenate([np.array(before, np.int64), ids])
        learned = np.concatenate([np.zeros(len(before), np.bool_), learned])
        unseen = max(0, int(learned.argmax()) - self._reach)
        return Lesson(ids[unseen:], learned[unseen:])


def padded(lessons: Sequence[Lesson]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and learned, both [B, T]. Padding comes last, where a causal model does not see it."""
    width = max(len(lesson.ids_T) for lesson in lessons)
    ids, learned = np.zeros((len(lessons), width), np.int64), np.zeros((len(lessons), width), np.bool_)
    for row, lesson in enumerate(lessons):
        ids[row, : len(lesson.ids_T)] = lesson.ids_T
        learned[row, : len(lesson.ids_T)] = lesson.learned_T
    return torch.from_numpy(ids), torch.from_numpy(learned)
