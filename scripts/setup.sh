#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# Prepares a clone: .venv with the pinned packages, bubblewrap, the agent CLIs and the embedded policy. Needs python3
# with pip; run again, it takes seconds. Settings:
#
#   POLAR_HARNESSES      the agent CLIs to install, by name, or `all` (default: pi)
#   POLAR_CACHE_DIR      uv, the CLIs and the warm-started policy (default: nemo-gym-polar in the user's cache)
#   POLAR_PYTHON         the interpreter for .venv, 3.12 or 3.13 (default: the first found, else uv's own download)
#   POLAR_TORCH_BACKEND  `cpu` or `default`: which torch build (default: cpu on Linux without a GPU, if obtainable)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 1
}

digest() { cat "$@" | git hash-object --stdin; }

# Two set-ups at once, of this clone or of another with the same cache: the second waits for the first.
lock() {
  mkdir -p "$POLAR_CACHE_DIR"
  if command -v flock >/dev/null; then
    exec 9>"$POLAR_CACHE_DIR/setup.lock"
    flock --nonblock 9 || { say 'waiting for another set-up to finish' && flock 9; }
  fi
}

# uv comes through pip into a directory of its own, which no rule about system-wide installs forbids.
get_uv() {
  local pins=$repo/requirements/uv.txt home
  home=$POLAR_CACHE_DIR/uv-$(digest "$pins" | cut -c1-12)
  uv=$home/bin/uv
  [ -x "$uv" ] && return
  say 'installing uv'
  rm -rf "$home.part"
  python3 -m pip install --quiet --require-hashes --only-binary :all: --target "$home.part" -r "$pins" ||
    fail 'pip could not install uv; check that "python3 -m pip --version" works and that its index answers'
  rm -rf "$home"
  mv "$home.part" "$home"
}

supported_python() {
  "$1" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# The interpreter to build .venv from: the path of one that runs, or the version that uv is to download.
choose_python() {
  if [ -n "${POLAR_PYTHON:-}" ]; then
    supported_python "$POLAR_PYTHON" || fail "POLAR_PYTHON=$POLAR_PYTHON is not a Python 3.12 or 3.13"
    printf '%s\n' "$POLAR_PYTHON"
    return
  fi
  local candidate
  for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python python3.13 python3 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python; do
    supported_python "$candidate" && command -v "$candidate" && return
  done
  printf '3.12\n'
}

make_venv() {
  supported_python "$venv/bin/python" && return
  local python
  python=$(choose_python)
  say "making .venv with Python $python"
  "$uv" venv --quiet --clear --python "$python" "$venv" ||
    fail "uv could not get Python $python; install Python 3.12 or name one with POLAR_PYTHON=/path/to/python3.12"
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }

# Linux without a GPU can do without the gigabytes of CUDA libraries, where the index of CPU builds can be reached.
install_cpu_torch() {
  local pin plan
  pin=$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' "$repo/requirements/torch.txt")
  local install=("$uv" pip install --python "$venv/bin/python" --torch-backend cpu "$pin")
  plan=$(UV_HTTP_TIMEOUT=10 UV_HTTP_RETRIES=0 timeout 30 "${install[@]}" --dry-run 2>&1) || return 1
  [[ $plan == *'+ torch'* ]] || return 0
  say "installing $pin, CPU build"
  "${install[@]}" --quiet
}

install_packages() {
  local pins=(-r "$repo/requirements/dev.txt") backend=${POLAR_TORCH_BACKEND:-auto}
  case $backend in auto | cpu | default) ;; *) fail "POLAR_TORCH_BACKEND=$backend: use cpu, default or auto" ;; esac
  if [ "$backend" = auto ]; then
    backend=default
    if [ "$(uname -s)" = Linux ] && ! has_gpu; then backend=cpu-if-obtainable; fi
  fi
  if [ "$backend" = default ] || ! install_cpu_torch; then
    [ "$backend" != cpu ] || fail 'the CPU build of torch could not be installed; try POLAR_TORCH_BACKEND=default'
    pins+=(-r "$repo/requirements/torch.txt")
    say 'installing the pinned packages, with the default build of torch (gigabytes on Linux)'
  else
    say 'installing the pinned packages'
  fi
  [ -t 2 ] || pins+=(--quiet)
  "$uv" pip install --python "$venv/bin/python" --require-hashes "${pins[@]}"
  "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable "$repo"
}

# .venv is complete when it was made from these very pins.
update_venv() {
  local stamp=$venv/.polar-setup want
  want=$(digest "$repo"/requirements/*.txt "$repo/pyproject.toml" "${BASH_SOURCE[0]}")
  if supported_python "$venv/bin/python" && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    say '.venv is up to date'
    return
  fi
  make_venv
  install_packages
  printf '%s\n' "$want" >"$stamp"
}

install_bubblewrap() {
  say 'installing bubblewrap'
  apt_install bubblewrap
}

check_sandbox() {
  command -v bwrap >/dev/null || install_bubblewrap || true
  bubblewrap_usable || say 'warning: bubblewrap is missing or may not make namespaces here. Agents would run without' \
    'isolation (runtime=local); install the package "bubblewrap" and allow unprivileged user namespaces'
}

install_harnesses() {
  local names=()
  read -ra names <<<"${POLAR_HARNESSES:-pi}"
  if [ "${names[*]}" = all ]; then names=(--all); fi
  "$venv/bin/polar" harness install "${names[@]}"
}

# The policy is named by what makes it. The answer is kept, since asking loads torch, which takes seconds.
prepare_policy() {
  local stamp=$venv/.polar-policy want directory
  want=$(find "$repo"/nemo_gym_polar/policy "$repo"/nemo_gym_polar/tasks "$repo"/conf "$repo"/recipes -type f \
    ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 cat | git hash-object --stdin)
  if [ "$(head -n 1 "$stamp" 2>/dev/null)" = "$want" ] && [ -d "$(tail -n 1 "$stamp")" ]; then
    say 'the policy is ready'
    return
  fi
  say 'preparing the policy, a minute or so'
  directory=$("$venv/bin/polar" policy prepare | tee >(cat >&2) | tail -n 1)
  printf '%s\n' "$want" "$directory" >"$stamp"
}

started=$SECONDS
lock
get_uv
update_venv
check_sandbox
install_harnesses
prepare_policy
say "ready after $((SECONDS - started)) s"
