#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when a source of the library is compiled less often than it must be: conduit/classes.awk sorts sources by what they
# include, and here their preprocessed text is compared: that of conduit_any in all threading modes, that of conduit_threads
# in those that share an object, that of all but conduit_segment with all kinds of segments, and that of all but conduit_traced with and
# without traces.
# One run of the preprocessor reads all sources of a class, one behind the other. TRUNKLINE_ANY_MODE leaves out what the public
# headers leave out for such sources, although a mode is defined here (gasnet-tools/guard.h).
# usage: modes.sh, with top_srcdir and top_builddir in the environment; CC, CPPFLAGS: else those of the build
set -u
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=$top_srcdir}"
top_builddir=$(cd "$top_builddir" && pwd) && cd "$top_srcdir" || exit 2
[ -e "$top_builddir/config.h" ] || { echo "$top_builddir has no config.h: configure first"; exit 1; }
set -f

# configured NAME: a variable of the build's Makefile
configured()
{
    sed -n "s/^$1 = //p" "$top_builddir/Makefile" 2>/dev/null
}
: "${CC:=${TRUNKLINE_TEST_CC:-$(configured CC)}}"
: "${CPPFLAGS=$(for name in CPPFLAGS PMIX_CFLAGS HWLOC_CFLAGS IBVERBS_CFLAGS RDMACM_CFLAGS; do configured $name; done)}"
work=$(mktemp -d "${TMPDIR:-/tmp}/modes.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

find common conduit -name '*.[ch]' | sort | awk -f conduit/classes.awk | tr ' ' '\n' |
    awk '/^conduit_[a-z]+$/ { class = $0 } /[.]c$/ { if (class == "conduit_segment") by_segment[$0] = 1; else of[$0] = class }
        END { for (source in of) print of[source] (source in by_segment ? "_segment" : ""), source }' | sort >"$work/classes"

# text OUTPUT CLASS FLAG...: of all its sources, each line behind the name of the file that it comes from
text()
{
    output=$1 class=$2
    shift 2
    sed -n "s/^$class \(.*\)/#include \"\1\"/p" "$work/classes" >"$work/all.c"
    # shellcheck disable=SC2086 # flags are words
    ${CC:-cc} -E -w -std=gnu11 -pthread -DHAVE_CONFIG_H -D_GNU_SOURCE -DTRUNKLINE_INSIDE -I. -Iconduit -Iconduit/include \
        -Iconduit/include/ibv-conduit -I"$top_builddir" -I"$top_builddir/conduit/include" $CPPFLAGS "$@" "$work/all.c" \
        >"$work/raw" || { echo "$class: does not preprocess with $*"; exit 1; }
    awk '/^# [0-9]+ "/ { split($0, part, "\""); file = part[2]; next } NF { print file ": " $0 }' "$work/raw" >"$work/$output"
}

# same CLASS FLAGS FLAGS...: the text is the same with each of them
same()
{
    class=$1
    grep -q "^$class " "$work/classes" || return
    shift
    first=$1
    # shellcheck disable=SC2086
    text one $class $first
    shift
    for flags; do
        # shellcheck disable=SC2086
        text other $class $flags
        cmp -s "$work/one" "$work/other" && continue
        diff "$work/one" "$work/other" | sed -n 's,^[<>] \./\([^:]*\): .*,\1,p' | sort -u | while read -r file; do
            echo "$file: in $class, but its text with $first is another than with $flags"
        done
        bad=1
    done
}

any='-DTRUNKLINE_ANY_MODE'
fast='-DGASNET_SEGMENT_FAST -DTRUNKLINE_SEGMENT_NAME="FAST"'
large='-DGASNET_SEGMENT_LARGE -DTRUNKLINE_SEGMENT_NAME="LARGE"'
everything='-DGASNET_SEGMENT_EVERYTHING -DTRUNKLINE_SEGMENT_NAME="EVERYTHING"'
seq='-DGASNET_SEQ -DTK_THREADED=0'
parsync='-DGASNET_PARSYNC -DTK_THREADED=0'
par='-DGASNET_PAR -DTK_THREADED=1'

for checks in '' ' -DTK_DEBUG=1 -DTRUNKLINE_DEBUG=1'; do
    same conduit_any "$any $seq $fast$checks" "$any $parsync $large$checks" "$any $par $everything$checks"
    same conduit_any_segment "$any $seq $fast$checks" "$any $par $fast$checks"
    same conduit_threads "$any $seq $fast$checks" "$any $parsync $large$checks" "$any $parsync $everything$checks"
    same conduit_threads "$any $par $fast$checks" "$any $par $large$checks" "$any $par $everything$checks"
    same conduit_threads_segment "$any $seq $fast$checks" "$any $parsync $fast$checks"
    same conduit_client "-DGASNET_PAR $fast$checks" "-DGASNET_PAR $large$checks" "-DGASNET_PAR $everything$checks"
done
# The same for what the trace twins share with the release libraries
untraced()
{
    find conduit -name '*.[ch]' | sort | awk -f conduit/classes.awk | tr ' ' '\n' |
        awk '/^conduit_[a-z]+$/ { class = $0 } /[.]c$/ { if (class == "conduit_traced") traced[$0] = 1; else if (class != "conduit_segment") of[$0] = class }
            END { for (source in of) if (!(source in traced)) print of[source], source }' | sort >"$work/classes"
}
mv "$work/classes" "$work/all"
untraced
traces=' -DTK_TRACE=1 -DTRUNKLINE_TRACE=1'
same conduit_any "$any $par $fast" "$any $par $fast$traces"
same conduit_threads "$any $par $fast" "$any $par $fast$traces"
same conduit_client "-DGASNET_PAR $fast" "-DGASNET_PAR $fast$traces"
mv "$work/all" "$work/classes"
[ $bad = 0 ] && awk '{ count[$1]++ } END { for (class in count) sources += count[class]; print sources " sources are as they are sorted" }' \
    "$work/classes"
exit $bad
