#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when a picture of the documents is not what contrib/pictures makes from its data, when texts of one overlap, when a page shows
# a picture that is not there or none shows one that is, or when an installed page shows one that is not installed.
# usage: pictures.sh             (through make check)
set -u
cd "${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}" || exit 2
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

wrong()
{
    echo "$*"
    bad=1
}

# compare: the pictures in the tree with those just made
compare()
{
    local name
    # shellcheck disable=SC2010 # names of our own
    for name in $(ls "$work/new" doc/pictures | grep '\.svg$' | sort -u); do
        if [ ! -e "$work/new/$name" ]; then
            wrong "doc/pictures/$name is not made by contrib/pictures/make-pictures"
        elif ! cmp -s "$work/new/$name" "doc/pictures/$name"; then
            wrong "doc/pictures/$name is not what its data make: run make pictures"
        fi
    done
}

mkdir "$work/new"
if contrib/pictures/make-pictures --out "$work/new"; then compare; else bad=1; fi

# What Makefile.am installs, word by word
sed -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' Makefile.am | sed -n 's/^dist_\(doc\|pictures\)_DATA = //p' | tr -s ' ' '\n' >"$work/installed"
for page in README.md doc/*.md; do
    for picture in $(grep -oE '!\[[^]]*\]\([^)]*\)' "$page" | sed 's/.*(//; s/)$//'); do
        path=$(realpath -m --relative-to=. "$(dirname "$page")/$picture")
        echo "$path" >>"$work/shown"
        [ -e "$path" ] || wrong "$page shows $path, which is not there"
        grep -qxF -- "$page" "$work/installed" || continue
        grep -qxF -- "$path" "$work/installed" || wrong "$page is installed and shows $path, which is not: dist_pictures_DATA of Makefile.am"
    done
done
for picture in doc/pictures/*.svg; do
    grep -qxF -- "$picture" "$work/shown" || wrong "$picture is shown by no page"
done
[ "$(sort -u "$work/shown" | wc -l)" -ge 7 ] || wrong "the pages show fewer than 7 pictures"

python3 tests/pictures/overlap.py 2>"$work/tests" || wrong "$(cat "$work/tests")"
exit $bad
