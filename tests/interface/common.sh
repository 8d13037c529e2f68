# shellcheck shell=sh disable=SC2034 # used where this is sourced
# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of this folder; sourced, not run. Sets `include` (options for the public headers of both trees), `scratch`
# (removed at the end) and `checked`. Skips in a sanitizer's tree, where headers and names are the same.
set -u
: "${top_builddir:?run through make check}" "${top_srcdir:?}"
if [ "${TRUNKLINE_TEST_SANITIZER:-no}" != no ]; then
    echo "skipped: headers and names are the same in a tree without sanitizers"
    exit 77
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/trunkline-test-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C # quotes in messages of compilers
here=$top_srcdir/tests/interface
. "$top_srcdir/tests/failures.sh"
checked=0
include="-I$top_srcdir/conduit/include -I$top_srcdir/conduit/include/ibv-conduit -I$top_builddir/conduit/include"
