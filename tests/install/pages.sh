#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installed pages refer only to installed files: each link and picture, each path of the source tree (unless the page says at its
# top
# that its paths are of the source tree; links even then) and each manual page of ours.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch
docdir=$root$TRUNKLINE_TEST_DOCDIR
mandir=$root$TRUNKLINE_TEST_MANDIR

# links PAGE: of Markdown, but for those into the web and within the page
links()
{
    grep -oE '\]\([^)]*\)' "$1" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//' | grep -vE '^(https?:|$)' >"$scratch/links"
    while read -r link; do
        case $link in
        /*) fail "$1 links $link, which is no place beside it" ;;
        *) [ -e "$(dirname "$1")/$link" ] || fail "$1 links $link, which is not installed" ;;
        esac
    done <"$scratch/links"
}

# source_paths PAGE TEXT: what the page names of the source tree
source_paths()
{
    head -n 10 "$1" | grep -q 'of the source tree' && return
    grep -oP '(?<![A-Za-z0-9_/-])((conduit|spawner|contrib|tests|man|doc)/[A-Za-z0-9_./-]*|HACKING|CONTRIBUTING|(quickstart|run-tests|install-packages)\.sh)' "$2" |
        sed 's/[.,/]*$//' | sort -u >"$scratch/paths"
    while read -r path; do
        case $path in
        doc/*) [ -e "$docdir/${path#doc/}" ] || fail "$1 names $path, which is not installed" ;;
        *) fail "$1 names $path, which is not installed, and does not say that it is of the source tree" ;;
        esac
    done <"$scratch/paths"
}

# manual_pages PAGE TEXT
manual_pages()
{
    grep -oE '(gasnetrun_ibv|gasnet_report|gasnet_trace|trunkline[a-z_-]*|softhca[a-z-]*|softgpu|mcswitchd)\([137]\)' "$2" | sort -u >"$scratch/pages"
    while read -r page; do
        name=${page%(*} section=${page##*(}
        section=${section%)}
        [ -e "$mandir/man$section/$name.$section" ] && continue
        # With --enable-mcswitch only
        [ "$name" = mcswitchd ] && [ ! -e "$bindir/mcswitchd" ] && continue
        fail "$1 names $page, which is not installed"
    done <"$scratch/pages"
}

count=0
for page in "$docdir"/README "$docdir"/CHANGELOG "$docdir"/*.md "$docdir"/examples/*; do
    [ -f "$page" ] || fail "missing: $page"
    links "$page"
    source_paths "$page" "$page"
    manual_pages "$page" "$page"
    count=$((count + 1))
done
# Of an installation, not of a tree to build
head -n 10 "$docdir/README" | grep -q 'source tree' && fail "README is about the source tree"
for page in "$mandir"/man[137]/*; do
    sed -e '/^\.\\"/d' -e 's/\\-/-/g' -e 's/\\f[BIR]//g' -e 's/^\.[BI]R \([^ ]*\) (/\1(/' "$page" >"$scratch/text"
    source_paths "$page" "$scratch/text"
    manual_pages "$page" "$scratch/text"
    count=$((count + 1))
done
echo "$count pages"
[ "$count" -ge 18 ] || fail "there should be more"
finish
