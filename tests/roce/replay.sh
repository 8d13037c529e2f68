#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The packet parsers with hostile packets: the committed corpus, all its prefixes, and variants that differ in one byte.
: "${top_srcdir:?}" "${top_builddir:?}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
if ! timeout 300 "$top_builddir/tests/roce/replay" "$top_srcdir/tests/roce/corpus" >"$work/out" 2>&1; then
    echo "FAIL: the last file named is the one"
    tail -5 "$work/out"
    exit 1
fi
