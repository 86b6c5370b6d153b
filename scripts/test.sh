#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# Sets up, then runs every check: lint, format, types, tests. Arguments go to pytest. What is missing fails; nothing is
# skipped for it. POLAR_TEST_WORKERS says how many test files run at once (default: 2).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

POLAR_HARNESSES=all "$repo/scripts/setup.sh"
"$repo/scripts/vllm.sh"

cd "$repo"
export PATH="$venv/bin:$PATH"
bubblewrap_usable || {
  echo 'test: error: the tests need a usable bubblewrap; install it and allow user namespaces' >&2
  exit 1
}
# The tests start a server of their own; the package's is of no use to them.
postgres_found() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }
postgres_found || { echo 'test: installing postgresql' && apt_install postgresql; } || true
postgres_found || {
  echo 'test: error: the tests need the programs of a PostgreSQL server; install the package "postgresql"' >&2
  exit 1
}

echo 'test: ruff check' && ruff check
echo 'test: ruff format --check' && ruff format --check
echo 'test: shellcheck' && shellcheck scripts/*.sh .ci/run
echo 'test: mypy' && mypy
# By file, since the tests of one share what is slow to start. Half of them wait for a program most of the time.
echo 'test: pytest' && exec pytest --numprocesses "${POLAR_TEST_WORKERS:-2}" --dist loadfile "$@"
