# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Many ways to ask for one thing: sentences put together from interchangeable parts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

FILE_NAMES = ("notes.md", "todo.txt", "report.csv", "main.py")
"""The files that the bundled tasks are about."""

OPENINGS = ("", "Please ", "Kindly ", "Now ", "Hello. ")
ENDINGS = (".", " now.", " here.", " and stop.", " in this directory.")


@dataclass(frozen=True, slots=True)
class Wording:
    """Verbs and objects of one kind of request; an object ends where the file's name follows."""

    verbs: tuple[str, ...]
    objects: tuple[str, ...]

    def patterns(self) -> list[str]:
        """All sentences, with `{name}` where the file's name goes, in a fixed order."""
        parts = product(OPENINGS, self.verbs, self.objects, ENDINGS)
        return [_sentence(f"{opening}{verb} {thing} {{name}}{ending}") for opening, verb, thing, ending in parts]

    def draw(self, generator: random.Random) -> str:
        """One of the sentences."""
        choose = generator.choice
        return _sentence(f"{choose(OPENINGS)}{choose(self.verbs)} {choose(self.objects)} {{name}}{choose(ENDINGS)}")


def split_patterns(wording: Wording, *, train: int, heldout: int, seed: int) -> tuple[list[str], list[str]]:
    """`train` and `heldout` different sentences of `wording`: a held-out problem is worded as no other is."""
    patterns = random.Random(seed).sample(wording.patterns(), train + heldout)
    return patterns[:train], patterns[train:]


def _sentence(text: str) -> str:
    first, _, rest = text.partition(". ")
    return ". ".join(part[:1].upper() + part[1:] for part in (first, rest) if part)
