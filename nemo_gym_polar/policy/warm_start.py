# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the policy that reinforcement learning starts from: tokenizer and weights, from made-up chats.

`python -m nemo_gym_polar.policy.warm_start --out DIR`. Takes about a minute, once: `ensure_policy` keeps the result in
the user's cache directory. The same settings make the same policy on the same machine.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.gate import Skills, WarmStartError, measure
from nemo_gym_polar.policy.lessons import Lesson, Lessons, padded
from nemo_gym_polar.policy.model import SIZES, create_policy, receptive_field, save_policy
from nemo_gym_polar.policy.synthetic import Chat, mixed, short_copy
from nemo_gym_polar.policy.tokenizer import make_tokenizer

Report = Callable[[int, int, float], None]
"""Called with the number of steps done, the number of all, and the loss."""

SOURCES = ("corpus", "gate", "lessons", "model", "synthetic", "tokenizer", "warm_start")


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
    train(model, tokenizer, settings, report)
    skills = measure(model, tokenizer, seed=settings.seed)
    skills.check()
    save_policy(model, tokenizer, directory)
    return skills


def warm_start_tokenizer() -> Tokenizer:
    """The same for every seed, so that a token means the same in all runs."""
    generator = random.Random(0)
    return make_tokenizer(chain(seed_corpus(), (_text(mixed(generator)) for _ in range(1000))))


def train(
    model: Qwen3ForCausalLM, tokenizer: Tokenizer, settings: WarmStartSettings, report: Report | None = None
) -> None:
    """Supervised learning of what the assistant says."""
    total = settings.copy_steps + settings.steps
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, total))
    for step, lessons in enumerate(_batches(model, tokenizer, settings), 1):
        optimizer.zero_grad()
        loss = _learn(model, lessons)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if report is not None:
            report(step, total, loss)


def rate(step: int, total: int, *, warmup: int = 20, floor: float = 0.05) -> float:
    """The share of the learning rate at `step`: a linear rise, then a linear fall."""
    return min(1.0, (step + 1) / warmup) * max(floor, 1 - step / total)


def _batches(model: Qwen3ForCausalLM, tokenizer: Tokenizer, settings: WarmStartSettings) -> Iterator[list[Lesson]]:
    lessons = Lessons(
        tokenizer, reach=receptive_field(model.config) or model.config.max_position_embeddings, seed=settings.seed
    )
    for _ in range(settings.copy_steps):
        yield lessons.batch(short_copy, settings.copy_batch, noise=False)
    for _ in range(settings.steps):
        yield lessons.batch(mixed, settings.batch, noise=True)


def _learn(model: Qwen3ForCausalLM, lessons: list[Lesson], parts: int = 3) -> float:
    """Gradients of the mean loss per learned token. Lessons of like length share a forward pass."""
    learned = sum(int(lesson.learned_T.sum()) for lesson in lessons)
    size = -(-len(lessons) // parts)
    total = 0.0
    for start in range(0, len(lessons), size):
        ids, wanted = padded(lessons[start : start + size])
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        chosen = wanted[:, 1:]
        loss = cross_entropy(model.lm_head(hidden[chosen]), ids[:, 1:][chosen], reduction="sum") / learned
        torch.autograd.backward(loss)
        total += loss.item()
    return total


@torch.no_grad()
def _align_head(model: Qwen3ForCausalLM, seed: int) -> None:
    """Let the head begin as the embeddings: then saying a token that was read is one and the same map for all tokens,
    instead of one to be learned token by token. They stay two matrices."""
    generator = torch.Generator().manual_seed(seed)
    model.model.embed_tokens.weight.normal_(0.0, 0.1, generator=generator)
    model.lm_head.weight.copy_(model.model.embed_tokens.weight)


def ensure_policy(settings: WarmStartSettings, *, report: Report | None = None) -> Path:
    """The directory of the policy of `settings`, made first if this machine does not have it.

    Two callers at once make it once: the second waits for the first. A directory that is there is complete.
    """
    directory = cache_root() / "policies" / digest(settings)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix="unfinished-") as unfinished:
                warm_start(settings, Path(unfinished) / "policy", report)
                (Path(unfinished) / "policy").rename(directory)
    return directory


def cache_root() -> Path:
    """`POLAR_CACHE_DIR`, else below the user's cache directory."""
    if chosen := os.environ.get("POLAR_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nemo-gym-polar"


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
