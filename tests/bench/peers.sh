#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make bench-peers reads what other libraries' programs print, and says what it can't read or find.
set -u
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
python3 "${top_srcdir:?}/tests/bench/peers/test_peers.py" >"$out" 2>&1 || { cat "$out"; exit 1; }
