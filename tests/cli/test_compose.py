# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration: what is shipped holds, what is overridden arrives, what is wrong is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel

from nemo_gym_polar.cli import paths
from nemo_gym_polar.cli.compose import compose, flatten
from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.validate import validate
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.training.run_settings import TrainSettings

BASE = paths.conf() / "train.yaml"


def settings(*overrides: str, recipe: Path = BASE) -> TrainSettings:
    return validate(compose(recipe, overrides), TrainSettings)


def model_keys(model: BaseModel, prefix: str = "") -> Iterator[str]:
    for name in type(model).model_fields:
        yield f"{prefix}{name}"
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from model_keys(value, f"{prefix}{name}.")


def test_conf_shows_every_setting_with_its_default() -> None:
    composed = compose(BASE)
    assert set(model_keys(TrainSettings())) <= set(flatten(composed.values))
    defaults = TrainSettings().model_dump(mode="json")
    written = validate(composed, TrainSettings).model_dump(mode="json")
    assert Limits(**written["runtime"].pop("settings")) == Limits(**defaults["runtime"].pop("settings"))
    assert written == defaults


@pytest.mark.parametrize("recipe", sorted(paths.recipe("laptop").parent.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_holds(recipe: Path) -> None:
    assert settings(recipe=recipe)


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param(f"{file.parent.name}={file.stem}", id=f"{file.parent.name}={file.stem}")
        for file in sorted(paths.conf().glob("*/*.yaml"))
    ],
)
def test_every_option_holds(choice: str) -> None:
    missing = {
        "evaluator=command": ["evaluator.config.command=true"],
        "engine=vllm": ["engine.url=http://127.0.0.1:1"],
        "engine=sglang": ["engine.url=http://127.0.0.1:1"],
        "harness=shell": ["harness.settings.command=true"],
    }
    assert settings(choice, *missing.get(choice, []))


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=7", "seed", 7),
        ("trainer.optimizer.lr=0", "trainer.optimizer.lr", 0.0),
        ("runtime=local", "runtime.backend", "local"),
        ("trainer.credit.exclude=[ERROR]", "trainer.credit.exclude", ["ERROR"]),
        ("+harness.settings.reasoning=true", "harness.settings.reasoning", True),
        ("env.heldout=null", "env.heldout", None),
        ("++seed=3", "seed", 3),
        ("~trainer.checkpoint_every", "trainer.checkpoint_every", 5),
    ],
)
def test_overrides_arrive(override: str, path: str, value: Any) -> None:
    found: Any = settings(override).model_dump(mode="json")
    for key in path.split("."):
        found = found[key]
    assert found == value


def test_the_last_choice_wins() -> None:
    assert settings("runtime=local", "runtime=bubblewrap").runtime.backend == "bubblewrap"


def test_command_line_wins_over_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("defaults:\n  - train\n  - override env: polar\n  - _self_\nseed: 4\ntrainer:\n  steps: 9\n")
    assert settings(recipe=recipe).trainer.steps == 9
    assert settings("trainer.steps=3", recipe=recipe).trainer.steps == 3
    assert settings(recipe=recipe).seed == 4


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["trainer.stepz=3"], ["'trainer.stepz'", "did you mean trainer.steps (conf/trainer/grpo.yaml)?"]),
        (["trainer.lr=3"], ["'trainer.lr'", "did you mean trainer.optimizer.lr"]),
        (["run_workers=3"], ["did you mean cluster.run_workers (conf/cluster/local.yaml)?"]),
        (["+trainer.stepz=3"], ["'trainer.stepz'", "did you mean trainer.steps"]),
        (["xyzzy=1"], ["'xyzzy'", "--cfg job"]),
        (["env=math"], ["env=math", "choose one of: polar"]),
        (["trainer=nemo_rl"], ["trainer=nemo_rl", "choose one of: grpo"]),
        (["trainer.steps=none"], ["trainer.steps='none'", "valid integer", "conf/trainer/grpo.yaml"]),
        (["trainer.steps=0"], ["trainer.steps=0", "greater than or equal to 1"]),
        (["trainer.steps=1,2"], ["trainer.steps=1,2", "sweep"]),
        (["seed"], ["'seed' is not an override", "key=value"]),
        (["evaluator=command"], ["evaluator.config.command has no value", "conf/evaluator/command.yaml"]),
        (["cluster.run_workers=0"], ["cluster.run_workers=0", "greater than or equal to 1"]),
        (["engine.sampling.top_p=0.5"], ["engine.sampling: top_p=0.5", "conf/engine/embedded.yaml"]),
    ],
)
def test_what_is_wrong_is_named(overrides: list[str], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        settings(*overrides)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_wrong_key_in_a_recipe_is_named(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("defaults:\n  - train\n  - _self_\ntrainer:\n  step: 9\n")
    with pytest.raises(UsageError, match=r"no setting 'trainer\.step'; did you mean trainer\.steps"):
        settings(recipe=recipe)


def test_a_broken_recipe_is_named(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("defaults: [nothing_of_that_name]\n")
    with pytest.raises(UsageError, match=r"^mine\.yaml: "):
        settings(recipe=recipe)
    recipe.write_text("a: [1\n")
    with pytest.raises(UsageError, match=r"^mine\.yaml is not YAML: "):
        settings(recipe=recipe)


@hypothesis_settings(max_examples=40)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
def test_any_text_is_an_override_or_one_line(text: str) -> None:
    try:
        compose(BASE, [text])
    except UsageError as error:
        assert "\n" not in str(error)


def test_recipes_are_found_by_name_and_path(tmp_path: Path) -> None:
    assert paths.recipe("laptop") == paths.recipe("laptop.yaml") == paths.recipe(str(paths.recipe("laptop")))
    with pytest.raises(FileNotFoundError, match=r"no recipe 'desktop'.*\(laptop\)"):
        paths.recipe("desktop")
