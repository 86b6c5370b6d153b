# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the policy that reinforcement learning starts from: tokenizer and weights, from made-up chats.

`python -m nemo_gym_polar.policy.warm_start --out DIR`. Takes about a minute, once: `ensure_policy` keeps the result in
the user's cache directory. The same settings make the same policy on the same machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.gate import Skills, WarmStartError, measure
from nemo_gym_polar.policy.lessons import Lesson, Lessons
from nemo_gym_polar.policy.made_once import cache_root, made_once
from nemo_gym_polar.policy.model import SIZES, create_policy, receptive_field, save_policy
from nemo_gym_polar.policy.supervised import Report, learn
from nemo_gym_polar.policy.synthetic import Chat, mixed, short_copy
from nemo_gym_polar.policy.tokenizer import make_tokenizer

SOURCES = ("corpus", "gate", "lessons", "model", "supervised", "synthetic", "tokenizer", "warm_start")


@dataclass(frozen=True, slots=True)
class WarmStartSettings:
    """`copy_steps` on short copying chats, then `steps` on all kinds; the batches are in chats."""

    seed: int = 0
    size: str = "tiny"
    copy_steps: int = 150
    copy_batch: int = 48
    steps: int = 300
    batch: int = 12
    lr: float = 3e-3
    threads: int = 2

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"policy.size={self.size!r} is unknown; take one of {', '.join(SIZES)}")
        for name in ("copy_steps", "copy_batch", "steps", "batch", "lr", "threads"):
            if getattr(self, name) <= 0:
                raise ValueError(f"policy.{name}={getattr(self, name)} must be positive")


def warm_start(settings: WarmStartSettings, directory: Path, report: Report | None = None) -> Skills:
    """Train a policy, check it, and write it to `directory`. Raises `WarmStartError` if it is not good enough."""
    torch.set_num_threads(settings.threads)
    tokenizer = warm_start_tokenizer()
    model = create_policy(tokenizer, SIZES[settings.size], seed=settings.seed)
    _align_head(model, settings.seed)
    batches = _curriculum(Lessons(tokenizer, reach=reach(model), seed=settings.seed), settings)
    learn(model, batches, steps=settings.copy_steps + settings.steps, lr=settings.lr, report=report)
    skills = measure(model, tokenizer, seed=settings.seed)
    skills.check()
    save_policy(model, tokenizer, directory)
    return skills


def warm_start_tokenizer() -> Tokenizer:
    """The same for every seed, so that a token means the same in all runs."""
    generator = random.Random(0)
    return make_tokenizer(chain(seed_corpus(), (_text(mixed(generator)) for _ in range(1000))))


def reach(model: Qwen3ForCausalLM) -> int:
    """How many tokens before an answer are worth showing."""
    return receptive_field(model.config) or int(model.config.max_position_embeddings)


def _curriculum(lessons: Lessons, settings: WarmStartSettings) -> Iterator[list[Lesson]]:
    """Copying comes first and in short chats: among many tokens and kinds of chat it is not found in this time."""
    for _ in range(settings.copy_steps):
        yield lessons.batch(short_copy, settings.copy_batch, noise=False)
    for _ in range(settings.steps):
        yield lessons.batch(mixed, settings.batch, noise=True)


@torch.no_grad()
def _align_head(model: Qwen3ForCausalLM, seed: int) -> None:
    """Let the head begin as the embeddings: then saying a token that was read is one and the same map for all tokens,
    instead of one to be learned token by token. They stay two matrices."""
    generator = torch.Generator().manual_seed(seed)
    model.model.embed_tokens.weight.normal_(0.0, 0.1, generator=generator)
    model.lm_head.weight.copy_(model.model.embed_tokens.weight)


def ensure_policy(settings: WarmStartSettings, *, report: Report | None = None) -> Path:
    """The directory of the policy of `settings`, in the user's cache; made first if this machine does not have it."""
    directory = cache_root() / "policies" / digest(settings)
    return made_once(directory, lambda unfinished: warm_start(settings, unfinished, report))


def digest(settings: WarmStartSettings) -> str:
    """Names the policy by its settings, and by all the source that has a say in it."""
    package = Path(__file__).parent
    sources = [package / f"{name}.py" for name in SOURCES] + sorted((package.parent / "tasks").glob("*.py"))
    hashed = hashlib.sha256(json.dumps(asdict(settings) | {"threads": None}, sort_keys=True).encode())
    for source in sources:
        hashed.update(source.read_bytes())
    return hashed.hexdigest()[:16]


def _text(chat: Chat) -> str:
    """What the tokenizer should know of a chat."""
    spoken = [str(message.get("content") or message.get("tool_calls")) for message in chat.messages]
    return "\n".join(spoken)


def main(arguments: Sequence[str] | None = None) -> None:
    default = WarmStartSettings()
    parser = argparse.ArgumentParser(prog="python -m nemo_gym_polar.policy.warm_start", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write the policy to")
    for field in fields(default):
        kind, value = type(getattr(default, field.name)), getattr(default, field.name)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=value, help="(%(default)s)")
    options = vars(parser.parse_args(arguments))
    directory = options.pop("out")
    try:
        skills = warm_start(WarmStartSettings(**options), directory, _print_progress)
    except (WarmStartError, ValueError) as error:
        sys.exit(f"warm start: {error}")
    print(f"{directory}: {skills}")


def _print_progress(step: int, steps: int, loss: float) -> None:
    if step % 50 == 0:
        print(f"step {step}/{steps}: loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
