#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The parsers of softhca against hostile text: the committed corpus and its neighbours, then a few seconds of
# fuzzing where clang has libFuzzer (make check-fuzz takes longer).
: "${top_srcdir:?}" "${top_builddir:?}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
if ! timeout 300 "$top_builddir/tests/softhca/replay" "$top_srcdir/tests/softhca/corpus" >"$work/out" 2>&1; then
    echo "FAIL: the corpus; the last file named is the one"
    tail -5 "$work/out"
    exit 1
fi
if [ "${TRUNKLINE_TEST_SANITIZER:-no}" != no ]; then
    echo "the corpus passed; no fuzzing, because a sanitizer of another compiler is in this build"
    exit 0
fi
"$top_srcdir/contrib/softhca/fuzz/fuzz.sh" 5
status=$?
# Without a fuzzer the corpus is the whole test.
[ $status != 77 ] || status=0
exit $status
