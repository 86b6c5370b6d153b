# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The token forest: what the policy read and sampled in a session, exactly, and the traces that follow from it.

A call is matched by its messages (`matching`, `tree`, `labels`), placed by its tokens (`placement`), on disk before it
is answered (`journal`, `committer`), judged by the requests after it (`evidence`), and trained on through `builders`:

    recorder = await Recorder.open(path, session_id, committer)
    match = recorder.match(conversation, hints)
    turn = await recorder.record(match, Generation(context, sampled, logprobs, message))
    traces = build(recorder.forest, "prefix_merging").traces
"""
