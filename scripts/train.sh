#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# Sets up, then trains the embedded policy by GRPO through the real Pi CLI. Arguments go to `nemo-rl train env=polar`:
#
#   scripts/train.sh                      the default recipe
#   scripts/train.sh trainer.steps=5      with other settings; `--help` lists them
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

"$repo/scripts/setup.sh"

# The last choice wins, so that a runtime given as an argument stays.
bubblewrap_usable || set -- runtime=local "$@"
exec "$venv/bin/nemo-rl" train env=polar "$@"
