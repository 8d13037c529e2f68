#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails unless make rebuilds exactly what a change requires: after a build nothing is left to do; a header that changed
# compiles what the compiler said includes it; a new class of a source (conduit/classes.awk) needs no list to be changed. Asks make what
# it would do (make -n -W), nothing is built.
# usage: rebuild.sh, with top_srcdir and top_builddir in the environment, after make
set -u
: "${top_srcdir:?run through make check}" "${top_builddir:?}"
cd "$top_builddir" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
library=conduit/libgasnet-ibv-par.a
bad=0

# compiled MAKE-OPTION...: the objects that make would compile for the library. Of these two files make -n takes it that they change.
compiled()
{
    make -n V=1 -o config.h -o conduit/include/gasnet_config.h "$@" $library 2>/dev/null | sed -n 's/.* -c -o \(obj\/[^ ]*\.o\) .*/\1/p' | sort
}

[ -e $library ] || { echo "$library is not built"; exit 1; }
idle=$(compiled)
[ -z "$idle" ] || { echo "after a build make would compile again $(echo "$idle" | wc -l) objects, such as $(echo "$idle" | head -1)"; exit 1; }
members=$(make -n V=1 -B $library 2>/dev/null | sed -n 's/.* -c -o \(obj\/[^ ]*\.o\) .*/\1/p' | sort)
[ "$(echo "$members" | wc -l)" -gt 250 ] || { echo "only $(echo "$members" | wc -l) objects of $library"; bad=1; }
for header in conduit/base/page.h conduit/transport/transport.h conduit/settings/settings.def conduit/include/gasnet_fwd.h; do
    source=$(sed -n 's/.* \([^ ]*\/'"$(echo $header | sed 's/\//\\\//g')"'\).*/\1/p' obj/*/*.d | head -1)
    compiled -W "$source" >"${TMPDIR:-/tmp}/rebuild.$$"
    echo "$members" | while read -r object; do
        ! grep -q -w -F "$header" "${object%.o}.d" || echo "$object"
    done | cmp -s - "${TMPDIR:-/tmp}/rebuild.$$" || { echo "$header changed: what includes it is not what would be compiled"; bad=1; }
    [ -s "${TMPDIR:-/tmp}/rebuild.$$" ] || { echo "$header changed, and nothing would be compiled"; bad=1; }
done
rm -f "${TMPDIR:-/tmp}/rebuild.$$"

# Each source in the list of its room, and each name there a source
for file in $(cd "$top_srcdir" && find common conduit -name '*.c'); do
    object=$(echo "${file%.c}.o" | tr / -)
    [ -n "$(find obj -name "$object" | head -1)" ] || case $file in
        conduit/tools/heap_*) ;; # one of the two
        *) echo "$file is compiled by nobody: conduit/sources.mk"; bad=1 ;;
        esac
done
exit $bad
