# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A small corpus for the tokenizer, generated here: what a coding agent's conversations are made of.

It only has to teach the tokenizer which pieces of text are common: instructions, tool schemas, shell commands, paths,
program text and listings.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

_VOCABULARY = {
    "verb": (
        "add append apply archive ask build call change check clean clear close collect compare compile complete "
        "compute configure connect convert copy correct count create define delete deploy describe download edit "
        "enable ensure execute explain explore export extract fail fetch fill filter find finish fix follow format "
        "generate get handle help implement import improve include inspect install keep list load locate look make "
        "manage match measure merge move name navigate open parse print produce provide push put read receive "
        "record reduce refactor reload remove rename repair replace report request require reset resolve restart "
        "restore return review rewrite run save search select send set show sort split start stop store submit "
        "suggest test touch trace track try understand update upgrade use validate verify view wait watch work "
        "write"
    ),
    "noun": (
        "account action address agent amount answer application argument array assistant attempt author backup base "
        "block body branch bug button bytes cache call change character chat check class client code column command "
        "comment commit config configuration connection console container content context conversation copy count "
        "data database date default dependency description design detail developer difference directory document "
        "editor element end entry environment error event example exception exit expression feature field file "
        "filter flag folder format function group guide handler header history host image index information input "
        "instruction integer interface issue item job key kind label language library limit line link list log loop "
        "machine message method mode model module name network node note number object offset operation option "
        "order output package page parameter parent part password path pattern permission plan point policy port "
        "position problem process program project prompt property question queue range reason record reference "
        "release report repository request resource response result role root row rule schema scope script section "
        "seconds server service session setting shell size source stage standard state status step storage stream "
        "string structure style summary symbol system table target task team template terminal test text thread "
        "time timeout title token tool topic tree type unit update user utility value variable version warning way "
        "weight window word worker workspace"
    ),
    "adjective": (
        "absolute active additional available basic brief careful clean clear common complete concise correct "
        "current custom dead deep different direct early easy empty exact existing external extra fast final first "
        "full general given global good hidden important internal invalid large last late local long main missing "
        "multiple new next normal old only open optional other possible previous private proper public quick quiet "
        "raw recent related relative relevant remote required right running safe same second short similar simple "
        "single small special specific stable strict strong temporary unknown unused useful valid whole wrong"
    ),
    "stem": (
        "agenda alpha answer app archive backup beta budget build cache changelog client colors config contacts "
        "data delta demo diary draft gamma groceries helpers index inventory invoice journal keys letter license "
        "log main makefile manifest map menu model names notes numbers orders output package plan poem prices "
        "readme recipe report result routes schedule schema scores secrets server settings setup shop story summary "
        "table tasks test todo totals users words"
    ),
    "suffix": ("txt md py json yaml toml csv sh log cfg ini html css js ts rs go c h sql xml"),
    "folder": ("src lib tests docs bin etc usr home tmp var opt data scripts config build assets workspace agent"),
    "tool": "bash read write edit grep find ls shell exec_command apply_patch glob task",
    "parameter": (
        "command path file_path content pattern query timeout workdir limit offset description old_string "
        "new_string oldText newText text name url recursive"
    ),
    "type": "string integer number boolean array object",
    "common": (
        "about above across actually after again against all almost along already also although always among "
        "another any anyone anything around as ask asked away bad based because become been being believe better "
        "between big both bring but by called came can cannot carefully case certain children city come company "
        "complete could country course day decided did do does doing done down during each either else enough "
        "especially even ever every everyone everything exactly explain fact family far few finally find five "
        "followed following for found four friend from further game gave getting give go going gone got great had "
        "half hand happen has have he head hear her here high him his home hope house however hundred I idea if "
        "important in indeed instead into is it its itself just keep kind knew know known later least leave left "
        "less let letter life like likely little live lot made make man many matter may maybe me mean meaning might "
        "million mind minutes moment money month more morning most mother much must my near necessary need never "
        "next night nine no nobody none nor nothing now number of off often oh okay on once one ones only or order "
        "other others otherwise our out over own part particular people perhaps person place please point power "
        "present probably provided quite rather read ready really reason remember said same saw say says school see "
        "seem seen several she should show since six small so some someone something sometimes soon sorry sound "
        "speak state still story such sure take taken talk tell ten than thank that the their them themselves then "
        "there therefore these they thing things think third this those though thought thousand three through thus "
        "today together told tomorrow too took toward true turn two under unless until up upon us usually very want "
        "was water we week well were what whatever when where whether which while white who whole whose why will "
        "with within without woman wonder word world would year years yes yesterday yet you young your"
    ),
}
WORDS = {slot: tuple(words.split()) for slot, words in _VOCABULARY.items()}

SENTENCES = (
    "You are a {adjective} coding assistant that works inside a terminal on the {noun} of the {noun}.",
    "You can {verb} {adjective} files, run shell commands and {verb} the {noun} until the {noun} is {adjective}.",
    "Please {verb} the {adjective} {noun} in {path}, then {verb} its {noun}.",
    "I need to {verb} {file} and {verb} {path} before I {verb} the {noun}.",
    "The {noun} of the {adjective} {noun} is not {adjective}; {verb} it with the {noun} from {file}.",
    "Could you {verb} a file called {file} that holds the word {stem}?",
    "What is in {path}? I'd like to know which {noun} it's for, and why they're {adjective}.",
    "When the {noun} fails, {verb} the {adjective} {noun}, don't {verb} it, and say what you've found.",
    "Use the {tool} tool to {verb} files; prefer it over other commands because its {noun} is {adjective}.",
    "- Always {verb} the {noun} before you {verb} a {adjective} {noun}.",
    "- Never {verb} {path} without a {noun}; it's {adjective} and we'll need it for the {noun}.",
    "# {Noun} {noun}s\n\nThis {noun} can {verb} every {noun} that the {adjective} {noun} has.\n",
    "Done. I have {verb}ed the {noun} in {file}; there were {number} {adjective} {noun}s.",
    "Current working directory: {path}\nCurrent date: {number}-{digits}-{digits}",
    "error: {file}: No such file or directory (exit code {digit})",
    "warning: the {noun} {noun} is {adjective}, {verb}ing {number} of {number} {noun}s [{path}:{number}]",
    "Would you {verb} {file} for me? Make the {noun} {adjective}, please.",
    "{chatter}, and {chatter}.",
    "{chatter}? {chatter}!",
    "First {verb} {file}, second {verb} {file}, and after that {verb} everything below {path}.",
)
COMMANDS = (
    "ls -la {path}",
    "cat {file}",
    "cat {path} | head -n {number}",
    "touch {file}",
    "mkdir -p {path} && cd {path}",
    'echo "{stem} {noun}" > {file}',
    "echo '{stem}' >> {file}",
    "rm -rf {path}",
    "mv {file} {file}",
    "cp -r {path} {path}",
    "grep -rn '{noun}' {path} | sort | uniq -c",
    "find . -name '*.{suffix}' -type f | wc -l",
    "sed -i 's/{noun}/{noun}/g' {file}",
    "python3 {file} --{noun} {number}",
    "git status && git diff {file} && git commit -m '{verb} the {noun}'",
    "chmod +x {path}",
    "printf '%s\\n' {stem} {stem} | tee {file}",
    "tail -n {digits} {path}.log",
    "head -c {number} {file}; test -f {file} && exit {digit}",
)
CODE = (
    "def {verb}_{noun}({noun}: str, {noun}s: list[int]) -> bool:\n    return len({noun}) == {number}\n",
    "import os\nimport sys\nfrom pathlib import Path\n\nfor {noun} in {noun}s:\n    print({noun})\n",
    "class {Noun}:\n    def __init__(self, {noun}=None):\n        self.{noun} = {noun}\n",
    "if ({noun} === null) {{\n  throw new Error('{noun} is {adjective}');\n}}\n",
    "const {noun} = await {verb}({{ {noun}: '{stem}', {noun}: {number} }});\n",
    '#!/usr/bin/env bash\nset -euo pipefail\n{verb}_{noun} "$1"\n',
    "| {noun} | {noun} |\n|---|---|\n| `{file}` | **{adjective}** |\n",
)


def seed_corpus(samples: int = 4000, *, seed: int = 0) -> Iterator[str]:
    """Yield `samples` texts; the same seed yields the same ones."""
    generator = random.Random(seed)
    makers = (_paragraph, _paragraph, _commands, _code, _schema, _tool_call, _listing)
    for _ in range(samples):
        yield generator.choice(makers)(generator)


class _Slots:
    """Draws a fresh word for every slot of a pattern, so that a pattern never repeats itself."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def __getitem__(self, slot: str) -> str:
        if slot in WORDS:
            return self._generator.choice(WORDS[slot])
        match slot:
            case "Noun":
                return self["noun"].capitalize()
            case "file":
                return f"{self['stem']}.{self['suffix']}"
            case "path":
                return f"/{self['folder']}/{self['folder']}/{self['file']}"
            case "chatter":
                return " ".join(self["common"] for _ in range(12)).capitalize()
            case _:
                return str(self._generator.randrange(_NUMBERS[slot]))


_NUMBERS = {"digit": 10, "digits": 100, "number": 3000}


def _fill(pattern: str, generator: random.Random) -> str:
    return pattern.format_map(_Slots(generator))


def _fill_some(patterns: tuple[str, ...], generator: random.Random) -> str:
    return "\n".join(_fill(pattern, generator) for pattern in generator.choices(patterns, k=3))


def _paragraph(generator: random.Random) -> str:
    return _fill_some(SENTENCES, generator)


def _commands(generator: random.Random) -> str:
    return _fill_some(COMMANDS, generator)


def _code(generator: random.Random) -> str:
    return "```\n" + _fill(generator.choice(CODE), generator) + "```"


def _listing(generator: random.Random) -> str:
    row = "-rw-r--r-- 1 agent agent {number} Jan {digits} {digits}:{digits} {file}"
    return "total 12\n" + _fill_some((row,), generator)


def _schema(generator: random.Random) -> str:
    """A tool declaration as JSON."""
    slots = _Slots(generator)
    names = generator.sample(WORDS["parameter"], k=generator.randint(1, 4))
    properties = {
        name: {"type": slots["type"], "description": _fill("The {adjective} {noun} to {verb}", generator)}
        for name in names
    }
    parameters = {"type": "object", "properties": properties, "required": names[:1], "additionalProperties": False}
    description = _fill("{verb} a {noun} and {verb} its {noun}. The {noun} is {adjective}.", generator)
    function = {"name": slots["tool"], "description": description, "parameters": parameters}
    return json.dumps({"type": "function", "function": function})


def _tool_call(generator: random.Random) -> str:
    """A call in the form that the policy writes, with what the tool said to it."""
    return _fill("<think>\n\n</think>\n\n<tool_call>\n<function={tool}>\n<parameter={parameter}>\n", generator) + (
        f"{_fill(generator.choice(COMMANDS), generator)}\n</parameter>\n</function>\n</tool_call><|im_end|>\n"
        f"<|im_start|>user\n<tool_response>\n{_fill(generator.choice(SENTENCES), generator)}\n</tool_response>"
        "<|im_end|>\n<|im_start|>assistant\n"
    )
