# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A group of traces as one prefix tree: what its traces have in common at the start is stored once.

The samples of a task begin with the same prompt, often tens of thousands of tokens of it, and the chains of a session
begin alike up to where they branch. A node holds a run of tokens and names its parent; a trace is the way from the root
to its node. Tokens alone decide what is shared, so the tree can be packed for tree attention, or flattened again: the
traces come back exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nemo_gym_polar.export.jsonl import decode_trace, encode_trace
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.tokens import Int32

SCHEMA = "nemo_gym_polar.prefix_tree/1"


@dataclass(slots=True, eq=False)
class _Node:
    tokens: Int32
    parent: _Node | None
    children: dict[int, _Node] = field(default_factory=dict)


def encode_tree(group: str, rows: Iterable[tuple[Trace, Mapping[str, Any]]]) -> dict[str, Any]:
    """The JSON object of a group; further keys of a row stand in its trace.

    A node comes after its parent. `node` of a trace is where it ends, None for a trace without tokens.
    """
    root = _Node(np.empty(0, np.int32), None)
    ends = [(_insert(root, trace.token_ids), trace, about) for trace, about in rows]
    nodes = list(_below(root))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    return {
        "schema": SCHEMA,
        "group": group,
        "tokens": sum(len(trace) for _, trace, _ in ends),
        "unique_tokens": sum(len(node.tokens) for node in nodes),
        "nodes": [{"parent": numbers.get(id(node.parent)), "token_ids": node.tokens} for node in nodes],
        "traces": [_encoded(trace) | {**about, "node": numbers.get(id(end))} for end, trace, about in ends],
    }


def decode_tree(row: Mapping[str, Any]) -> list[Trace]:
    """The traces of a group, equal to those that `encode_tree` was given."""
    if row.get("schema") != SCHEMA:
        raise ValueError(f"not a prefix tree: its schema is {row.get('schema')!r}, expected {SCHEMA!r}")
    return [decode_trace({**trace, "token_ids": _path(row["nodes"], trace["node"])}) for trace in row["traces"]]


def _insert(root: _Node, tokens: Int32) -> _Node:
    """The node at whose end `tokens` end; runs are split where they part."""
    node, at = root, 0
    while at < len(tokens):
        child = node.children.get(int(tokens[at]))
        if child is None:
            child = node.children[int(tokens[at])] = _Node(np.array(tokens[at:], np.int32), node)
            return child
        same = _common(child.tokens, tokens[at:])
        node = child if same == len(child.tokens) else _split(child, same)
        at += same
    return node


def _split(node: _Node, at: int) -> _Node:
    """Put a new node with the first `at` tokens above `node`, which keeps its end: traces that end there still do."""
    assert node.parent is not None
    upper = _Node(node.tokens[:at], node.parent, {int(node.tokens[at]): node})
    node.parent.children[int(node.tokens[0])] = upper
    node.tokens, node.parent = node.tokens[at:], upper
    return upper


def _common(one: Int32, other: Int32) -> int:
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length


def _below(root: _Node) -> Iterator[_Node]:
    """Every node but the root, parents first. No recursion: a chain of a thousand turns is as deep."""
    waiting = list(root.children.values())[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += list(node.children.values())[::-1]


def _encoded(trace: Trace) -> dict[str, Any]:
    row = encode_trace(trace)
    del row["token_ids"]
    return row


def _path(nodes: Sequence[Mapping[str, Any]], end: int | None) -> Int32:
    runs: list[Any] = []
    while end is not None:
        runs.append(nodes[end]["token_ids"])
        end = nodes[end]["parent"]
    return np.concatenate([np.empty(0, np.int32), *(np.asarray(run, np.int32) for run in reversed(runs))])
