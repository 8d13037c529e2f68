#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The public headers compile without a warning, with every compiler and in every standard: each
# alone and twice, and each before and after each other one (item 76). A mistake of a client gives
# one error with the remedy. Macros keep to the names of the interface.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
compiled=0

plain="-I$top_srcdir/conduit/include -I$top_builddir/conduit/include"
include="$plain -I$top_srcdir/conduit/include/ibv-conduit"
warnings="-Wall -Wextra -pedantic -Wshadow -Werror -fsyntax-only"
headers=$(cd "$top_srcdir/conduit/include" && echo *.h)
tools_first="include gasnetex.h before gasnet_tools.h"

# quiet LABEL command... SOURCES: must succeed in silence
quiet()
{
    label=$1
    shift
    if "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]; then
        compiled=$((compiled + 1))
    else
        sed "s,$scratch/,," "$scratch/out" | head -5
        fail "$label"
    fi
}

# refused TEXT HEADERS OPTIONS...: a file that includes these is one error, with TEXT
refused()
{
    text=$1
    write refused.c "$2"
    shift 2
    for compiler in $compilers; do
        # shellcheck disable=SC2086 # lists of options
        $compiler $include "$@" -fsyntax-only "$scratch/refused.c" >"$scratch/out" 2>&1
        if [ "$(grep -c ' error: ' "$scratch/out")" -ne 1 ] || ! grep -q " error: .*$text" "$scratch/out"; then
            head -3 "$scratch/out"
            fail "$compiler $*, $(tr '\n' ' ' <"$scratch/refused.c"): not one error with '$text'"
        fi
    done
}

# write FILE HEADERS
write()
{
    for header in $2; do
        echo "#include <$header>"
    done >"$scratch/$1"
    echo "extern int not_empty;" >>"$scratch/$1"
}

# needs_conduit HEADER: does it include gasnetex.h?
needs_conduit()
{
    case " $conduit_headers " in *" $1 "*) true ;; *) false ;; esac
}

# shellcheck disable=SC2086 # lists of options
standards()
{
    for header in $headers; do
        write "alone-$header.c" "$header $header"
    done
    for compiler in $compilers; do
        for std in c99 c11 c2x; do
            quiet "$compiler -std=$std: each alone" $compiler -std=$std $warnings -Wstrict-prototypes -DGASNET_PAR $include "$scratch"/alone-*.c
        done
        quiet "$compiler -std=gnu11, SEQ: each alone" $compiler -std=gnu11 -D_GNU_SOURCE=1 $warnings -DGASNET_SEQ $include "$scratch"/alone-*.c
        quiet "$compiler -std=gnu17, PARSYNC: each alone" $compiler -std=gnu17 -D_GNU_SOURCE=1 $warnings -DGASNET_PARSYNC=yes $include "$scratch"/alone-*.c
    done
    for compiler in $cxx_compilers; do
        for std in c++11 c++17 c++20; do
            quiet "$compiler -std=$std: each alone" $compiler -x c++ -std=$std $warnings -DGASNET_PAR $include "$scratch"/alone-*.c
        done
    done
}

# shellcheck disable=SC2086 # lists of options
orders()
{
    for first in $headers; do
        for second in $headers; do
            [ "$first" != "$second" ] || continue
            if [ "$first" = gasnet_tools.h ] && needs_conduit "$second"; then
                refused "$tools_first" "$first $second" -DGASNET_PAR
            else
                write "pair-$first-$second.c" "$first $second $first"
            fi
        done
    done
    # Each compiler has read each header alone, in each language; an order that breaks is one of macros and breaks for all of them.
    for compiler in ${compilers##* }; do
        quiet "$compiler: each before and after each other" $compiler -std=c99 $warnings -DGASNET_PAR $include "$scratch"/pair-*.c
    done
}

mistakes()
{
    for header in $conduit_headers; do
        refused "define exactly one of GASNET_SEQ, GASNET_PARSYNC, GASNET_PAR" "$header"
    done
    refused "define exactly one of GASNET_SEQ" gasnetex.h -DGASNET_SEQ -DGASNET_PAR
    refused "define exactly one of GASNET_SEQ" gasnetex.h -DGASNET_SEQ -DGASNET_PARSYNC
    refused "define exactly one of GASNET_SEQ" gasnetex.h -DGASNET_PARSYNC -DGASNET_PAR
    refused "define exactly one of GASNET_SEQ" gasnetex.h -DGASNET_SEQ -DGASNET_PARSYNC -DGASNET_PAR
}

# gasnet_fwd.h is for files that know neither mode nor conduit.
without_mode()
{
    write fwd.c gasnet_fwd.h
    for compiler in $compilers; do
        # shellcheck disable=SC2086 # lists of options
        quiet "$compiler: gasnet_fwd.h without mode and conduit" $compiler -std=c99 $warnings $plain "$scratch/fwd.c"
    done
}

# The macros that gasnetex.h and the headers it includes define, found by the line markers that name
# the files. Clients of the library that we replace rely on a few names that were never public; we
# define those as well.
leaned_on='_STRINGIFY(_HELPER)?|_CONCAT(_HELPER)?|GASNETC_IBV_(MAX_HCAS_CONFIGURE|RCV_THREAD)|gasneti_mynode|gasneti_nodes'
macros()
{
    write all.c gasnetex.h
    # shellcheck disable=SC2086 # lists of options
    gcc -E -dD -DGASNET_PAR $include "$scratch/all.c" | awk -v ours="$top_srcdir" -v generated="$top_builddir" '
        /^# [0-9]+ "/ { in_ours = index($3, ours) || index($3, generated) }
        in_ours && /^#define / { sub(/[(].*/, "", $2); print $2 }' |
        grep -vE '^(GASNETI?|GASNETT|GEX|SIZEOF_GEX|TRUNKLINE|PLATFORM)_|^(gex|gasnett?|trunkline)_|^GASNETEX_H$' |
        grep -vxE "$leaned_on" |
        sort -u >"$scratch/foreign"
    [ ! -s "$scratch/foreign" ] || fail "macros with names that clients own: $(tr '\n' ' ' <"$scratch/foreign")"
}

compilers='' cxx_compilers='' conduit_headers=''
for compiler in gcc clang; do
    command -v $compiler >/dev/null && compilers="$compilers $compiler"
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null && cxx_compilers="$cxx_compilers $compiler"
done
for header in $headers; do
    write includes.c "$header"
    # shellcheck disable=SC2086 # lists of options
    if ${compilers##* } -M -DGASNET_PAR $include "$scratch/includes.c" | grep -q 'include/gasnetex[.]h'; then
        conduit_headers="$conduit_headers $header"
    fi
done

standards
orders
mistakes
without_mode
macros
echo "$compiled runs of compilers were quiet, over $(echo "$headers" | wc -w) headers"
[ "$compiled" -ge 8 ] || fail "no compiler was found"
finish
