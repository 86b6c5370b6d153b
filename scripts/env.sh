# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts: where things are, and how many threads torch may use.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck disable=SC2034 # read by the scripts that source this
venv=$repo/.venv
cores=$(getconf _NPROCESSORS_ONLN)

export POLAR_CACHE_DIR="${POLAR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/nemo-gym-polar}"
# Threads that spin while they wait starve the sandboxes and the engine next to them.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((cores < 4 ? cores : 4))}"
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-false}"
export MPLBACKEND="${MPLBACKEND:-Agg}"
# Dozens of programs are started here: without compiled files each compiles all that it imports, for seconds.
unset PYTHONDONTWRITEBYTECODE

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian packages, where there is apt and the right to use it.
apt_install() {
  [ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null || return 1
  as_root true 2>/dev/null || return 1
  as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes \
    --no-install-recommends "$@" >/dev/null
}

# A sandbox that works, not just a program of that name: containers and some distributions forbid user namespaces.
bubblewrap_usable() {
  bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev true >/dev/null 2>&1
}
