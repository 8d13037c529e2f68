#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when a source is missing in what `make dist` packs, and when the list of files no longer fits into one argument of a command
# (128 KiB with Linux), by which automake's rule passes it: libraries that are built from the same sources in several ways
# name them with nodist_ but for one.
# usage: dist.sh             (through make check)
set -u
: "${top_srcdir:?run through make check}" "${top_builddir:?}"
if [ "$top_srcdir" -ef "$top_builddir" ]; then
    echo "a build inside the tree: its output can't be told from sources; skipped"
    exit 77
fi
list=$(mktemp) || exit 2
trap 'rm -f "$list"' EXIT
bad=0

# make's own copy of the Makefile is parsed, nothing is built.
printf 'show-distfiles:\n\t@$(info $(DISTFILES)):\n' | make -s -C "$top_builddir" -f - -f Makefile show-distfiles >"$list" 2>/dev/null
bytes=$(wc -c <"$list")
if [ "$bytes" -gt 125000 ]; then
    echo "the files of make dist: $bytes bytes of names, and 131071 are possible"
    bad=1
fi

tr ' ' '\n' <"$list" | sed "s|^$(cd "$top_srcdir" && pwd)/||; s|^$top_srcdir/||; s|^\(\.\.*/\)*||" | sort -u >"$list.all"
trap 'rm -f "$list" "$list.all"' EXIT
while read -r file; do
    grep -qxF -- "$file" "$list.all" && continue
    echo "make dist forgets $file"
    bad=1
done < <(cd "$top_srcdir" && find common conduit spawner contrib tests man doc -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' \
    -o -name '*.py' -o -name '*.js' -o -name '*.html' -o -name '*.css' -o -name '*.awk' -o -name '*.svg' -o -name '*.inc' \
    -o -name '*.[1-8]' -o -name '*.[1-8].in' -o -name '*.md' -o -name '*.txt' -o -name README -o -perm /100 \) |
    grep -vE '/(build|build-tests)/')
[ "$(wc -l <"$list.all")" -gt 500 ] || { echo "no list of make dist"; bad=1; }
exit $bad
