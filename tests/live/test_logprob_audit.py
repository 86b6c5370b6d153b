# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded engine finds what it sampled as likely as it said, and what was spliced not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from tokenizers import Tokenizer

from nemo_gym_polar.cli.logprob_audit import compare
from nemo_gym_polar.engines.base import ContextOverflowError
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.forest.differences import TOO_LONG
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.tokens import Float32, Int32
from tests.support.commands import run_command
from tests.support.policies import saved, small_tokenizer, wild_policy
from tests.support.scored import sample_session
from tests.support.served_policy import serving

TOLERANCE = 1e-4
LIMIT = 400


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


@pytest.fixture
def url(tokenizer: Tokenizer, tmp_path: Path) -> Iterator[str]:
    directory = saved(wild_policy(tokenizer, seed=1), tokenizer, tmp_path / "policy")
    with serving(directory, "--served-model-name", "policy", "--max-model-len", str(LIMIT)) as (url, _):
        yield url


@pytest.fixture
async def engine(url: str) -> AsyncIterator[VLLM]:
    engine = VLLM(Replicas([url]), model="policy")
    yield engine
    await engine.close()


def audit(directory: Path, url: str, *options: str) -> tuple[int, dict[str, Any], str]:
    asked = ("--engine", url, "--engine-kind", "embedded", "--model", "policy", "--json", *options)
    ended = run_command(directory.parent, "polar", "audit", str(directory), *asked)
    return ended.returncode, json.loads(ended.stdout or "{}"), ended.stderr


async def test_what_was_sampled_differs_by_rounding(
    engine: VLLM, url: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    journal = await sample_session(engine, tokenizer, tmp_path / "s.journal")
    code, report, errors = audit(journal, url, "--tolerance", str(TOLERANCE))
    assert (code, errors, report["sound"]) == (0, "", True)
    assert report["logprobs"]["left_out"] == {}
    by_edge = {row["edge"]: row for row in report["logprobs"]["edges"]}
    assert by_edge.keys() == {"root", "continue"}
    assert sum(row["tokens"] for row in by_edge.values()) == report["trained_tokens"] > 20
    assert all(0 <= row["p50"] <= row["p99"] <= row["max"] < TOLERANCE for row in by_edge.values())


async def test_a_spliced_chain_is_caught(engine: VLLM, url: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Its journal agrees with itself in every digest; only the engine can tell."""
    journal = await sample_session(engine, tokenizer, tmp_path / "s.journal", spliced=True)
    code, report, _ = audit(journal, url, "--tolerance", str(TOLERANCE))
    assert (code, report["sound"], report["breaches"]) == (1, False, [])
    assert "a log-probability differs by" in report["logprobs"]["disagreement"]
    by_edge = {row["edge"]: row for row in report["logprobs"]["edges"]}
    assert by_edge["root"]["max"] < TOLERANCE
    assert by_edge["continue"]["max"] > 1000 * TOLERANCE
    assert not by_edge["continue"]["worst"].startswith("turn 0,")
    assert audit(journal, url)[0] == 0  # without a tolerance it only reports


async def test_tokens_of_other_weights_are_left_out(
    engine: VLLM, url: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    journal = await sample_session(engine, tokenizer, tmp_path / "s.journal", turns=2)
    async with (
        aiohttp.ClientSession(url) as client,
        client.post("/update_weight_version", json={"new_version": "next"}) as reply,
    ):
        assert reply.status == 200
    code, report, _ = audit(journal, url)
    assert (code, report["logprobs"]["engine_weights"]) == (1, "next")
    assert report["logprobs"]["left_out"] == {"other_weights": report["trained_tokens"]}
    assert "no token could be compared" in report["logprobs"]["disagreement"]
    code, report, _ = audit(journal, url, "--any-version", "--tolerance", str(TOLERANCE))
    assert (code, report["logprobs"]["left_out"]) == (0, {})


async def test_no_engine_is_one_line(engine: VLLM, tokenizer: Tokenizer, tmp_path: Path) -> None:
    journal = await sample_session(engine, tokenizer, tmp_path / "s.journal", turns=1)
    code, _, errors = audit(journal, "http://127.0.0.1:9")
    assert code == 1
    assert errors.startswith("polar: error: No engine answered at http://127.0.0.1:9")
    assert errors.count("\n") == 1


async def test_a_chain_that_fills_the_context_is_counted(
    engine: VLLM, url: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """vLLM's API wants to sample one token after those that it scores."""
    sampled = await sample_session(engine, tokenizer, tmp_path / "s.journal", turns=1)
    whole = await engine.score(read_journal(sampled).tokens(0))
    assert (whole[0], whole.dtype) == (0.0, np.float32)
    with pytest.raises(ContextOverflowError):
        await engine.score(np.full(LIMIT, 50, np.int32))
    differences = await compare(_Full(), read_journal(sampled), any_version=True)
    assert differences.left_out == {TOO_LONG: len(read_journal(sampled)[0].sampled)}


class _Full:
    """An engine whose context is smaller than what it is asked about."""

    async def score(self, tokens: Int32) -> Float32:
        raise ContextOverflowError("full")

    async def weight_version(self) -> str | None:
        return None

    async def close(self) -> None: ...
