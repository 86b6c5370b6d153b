# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from nemo_gym_polar.policy.gate import WarmStartError
from nemo_gym_polar.policy.tokenizer import VOCAB_SIZE
from nemo_gym_polar.policy.warm_start import WarmStartSettings, digest, ensure_policy, main, warm_start_tokenizer
from nemo_gym_polar.tasks.wording import FILE_NAMES

HASTY = WarmStartSettings(copy_steps=1, copy_batch=2, steps=1, batch=2, threads=1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"size": "huge"}, "policy.size='huge' is unknown; take one of tiny, small, medium"),
        ({"steps": 0}, "policy.steps=0 must be positive"),
        ({"lr": -1.0}, "policy.lr=-1.0 must be positive"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WarmStartSettings(**settings)  # type: ignore[arg-type]  # that is the test


def test_the_digest_is_that_of_what_decides_the_weights() -> None:
    assert digest(HASTY) == digest(WarmStartSettings(copy_steps=1, copy_batch=2, steps=1, batch=2, threads=7))
    others = [WarmStartSettings(), WarmStartSettings(seed=1), WarmStartSettings(lr=1e-3), HASTY]
    assert len({digest(settings) for settings in others}) == len(others)


def test_a_policy_that_is_not_good_enough_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path))
    seen: list[tuple[int, int]] = []
    with pytest.raises(WarmStartError, match=r"well_formed=0\.00 is below"):
        ensure_policy(HASTY, report=lambda step, steps, _: seen.append((step, steps)))
    assert seen == [(1, 2), (2, 2)]
    assert [path.suffix for path in (tmp_path / "policies").iterdir()] == [".lock"]


def test_a_policy_that_is_there_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path))
    kept = tmp_path / "policies" / digest(HASTY)
    kept.mkdir(parents=True)
    assert ensure_policy(HASTY) == kept


def test_the_names_of_the_tasks_are_two_tokens_each() -> None:
    tokenizer = warm_start_tokenizer()
    assert tokenizer.get_vocab_size() == VOCAB_SIZE
    for name in FILE_NAMES:
        assert len(tokenizer.encode(f" {name}").ids) == 2


def test_the_command_ends_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^warm start: policy\.steps=0 must be positive$"):
        main(["--out", str(tmp_path / "policy"), "--steps", "0"])
    assert not (tmp_path / "policy").exists()
