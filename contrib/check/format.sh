#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sources are as clang-format writes them by .clang-format. Versions differ, so only that one judges which formatted the tree. Left out: C++,
# and the table of trunkline_lines.h, a line for each name.
set -u
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 2
version=14

command -v clang-format >/dev/null || { echo "SKIP: there is no clang-format"; exit 77; }
found=$(clang-format --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
[ "$found" = $version ] || { echo "SKIP: clang-format is version ${found:-unknown}, not $version"; exit 77; }
files=$(git ls-files -- '*.[ch]' ':!*/trunkline_lines.h' 2>/dev/null)
[ -n "$files" ] || { echo "SKIP: no repository, which says which files are sources"; exit 77; }
unformatted=$(tr '\n' '\0' <<<"$files" | xargs -0 -n 100 -P 2 clang-format --dry-run 2>&1 | sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: warning: .*/\1/p' | sort -u -t: -k1,1)
[ -z "$unformatted" ] && exit 0
sed 's/$/: is not formatted; clang-format -i writes it so/' <<<"$unformatted"
exit 1
