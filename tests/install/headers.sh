#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Clients of the installed headers compile without a word in every C and C++ standard in use, with every compiler that is here and the
# warnings that clients enable (-Wundef among them), and modes that contradict each other are refused. Each header alone, their
# order and debug libraries: tests/interface, for the same files (tree.sh compares them).
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch

warnings="-Wall -Wextra -pedantic -Wstrict-prototypes -Wshadow -Wundef -Werror"
cxx_warnings="-Wall -Wextra -pedantic -Wshadow -Wundef -Werror"
includes="-I$incdir -I$incdir/ibv-conduit"
compiled=0
optimised=-O2
[ "$TRUNKLINE_TEST_DEBUG" = no ] || optimised=-O0

# try LABEL command...: must succeed in silence
try()
{
    label=$1
    shift
    if "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]; then
        compiled=$((compiled + 1))
    else
        head -5 "$scratch/out"
        fail "$label"
    fi
}

# refuse TEXT command...: must fail and say TEXT
refuse()
{
    text=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then
        fail "accepted: $*"
    elif ! grep -q "$text" "$scratch/out"; then
        cat "$scratch/out"
        fail "refused for another reason than '$text'"
    fi
}

# shellcheck disable=SC2086 # lists of options
c_standards()
{
    for std in c99 gnu99 c11 c17 c2x; do
        for mode in SEQ PAR PARSYNC; do
            try "$1 -std=$std $mode" "$1" -std=$std -fsyntax-only $warnings -D_GNU_SOURCE=1 -DGASNET_$mode $includes "$here/client.c"
        done
    done
    for std in c99 gnu99 c11 c17 c2x; do
        for mode in GASNETT_THREAD_SAFE GASNETT_THREAD_SINGLE GASNETT_LITE_MODE; do
            try "$1 -std=$std $mode, tools" "$1" -std=$std -fsyntax-only $warnings "-D$mode" $includes "$here/tools.c"
        done
    done
}

# shellcheck disable=SC2086
cxx_standards()
{
    for std in c++11 c++14 c++17 c++20; do
        for mode in SEQ PAR; do
            try "$1 -std=$std $mode" "$1" -x c++ -std=$std -fsyntax-only $cxx_warnings -D_GNU_SOURCE=1 -DGASNET_$mode $includes "$here/client.c"
            try "$1 -std=$std $mode, tools" "$1" -x c++ -std=$std -fsyntax-only $cxx_warnings -DGASNET_$mode $includes "$here/tools.c"
        done
        try "$1 -std=$std, lite tools" "$1" -x c++ -std=$std -fsyntax-only $cxx_warnings -DGASNETT_LITE_MODE $includes "$here/tools.c"
    done
}

# every_standard COMPILER LANGUAGE STANDARDS WARNINGS: each public header, as a client of either kind of library compiles it, and a
# client that fills its table of handlers as 0.18 allowed
# shellcheck disable=SC2086
every_standard()
{
    for std in $3; do
        kind="-x $2 -std=$std $4 -fsyntax-only -D_GNU_SOURCE=1 $includes"
        try "$1 -std=$std, all headers, optimised" "$1" $kind $optimised -DGASNET_PAR "$scratch/all.c"
        try "$1 -std=$std, all headers, debug twin" "$1" $kind -DTRUNKLINE_DEBUG=1 -DGASNET_SEQ "$scratch/all.c"
        try "$1 -std=$std, client of 0.18" "$1" $kind -DGASNET_PAR "$here/client018.c"
    done
}

# Each public header in turn in one source, in all modes, as a client of each kind of library compiles it: optimised, where puts,
# gets and atomics between neighbours are code in the headers, of the debug twin and of the trace twin.
# shellcheck disable=SC2086
all_headers()
{
    kind="$warnings -x c -std=c11"
    case $1 in *++) kind="$cxx_warnings -x c++ -std=c++11" ;; esac
    for mode in SEQ PAR PARSYNC; do
        for library in $optimised -DTRUNKLINE_DEBUG=1 "$optimised -DTRUNKLINE_TRACE=1"; do
            try "$1 $mode $library, all headers" "$1" $kind -fsyntax-only -D_GNU_SOURCE=1 -DGASNET_$mode $library $includes "$scratch/all.c"
        done
    done
}

# The checks above don't compile an installed header that no public header includes.
# shellcheck disable=SC2086
none_is_left_out()
{
    {
        gcc -M -DGASNET_PAR $includes "$scratch/all.c"
        gcc -M -DGASNET_PAR -DTRUNKLINE_DEBUG=1 $includes "$scratch/all.c"
        gcc -M -DGASNET_PAR -isystem "$incdir" $includes "$scratch/all.c" # as below /usr/local
    } | tr -s ' \\' '\n' | grep -F "$incdir/" | sort -u >"$scratch/reached"
    find "$incdir" -name '*.h' | sort | comm -23 - "$scratch/reached" >"$scratch/missed"
    [ -s "$scratch/missed" ] && fail "installed, but not compiled here: $(paste -sd ' ' "$scratch/missed")"
}

# shellcheck disable=SC2086
refusals()
{
    printf '#include <gasnet_tools.h>\n' >"$scratch/tools.c"
    refuse "at most one of GASNETT_THREAD_SAFE" "$1" -fsyntax-only -DGASNETT_THREAD_SAFE -DGASNETT_LITE_MODE $includes "$scratch/tools.c"
    printf '#include <gasnetex.h>\n#include <gasnet_tools.h>\n' >"$scratch/tools.c"
    refuse "contradicts GASNET_SEQ" "$1" -fsyntax-only -DGASNET_SEQ -DGASNETT_THREAD_SAFE $includes "$scratch/tools.c"
}

public=$(cd "$incdir" && echo gasnet*.h trunkline*.h && cd ibv-conduit && echo gasnet_core.h gasnet_core_fwd.h)
for header in gasnetex.h $public trunkline_query.h; do
    echo "#include <$header>"
done >"$scratch/all.c"
none_is_left_out
for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "no $cc here"; continue; }
    c_standards $cc
    all_headers $cc
    every_standard $cc c "c99 c11 c17 c2x" "$warnings"
    refusals $cc
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "no $cxx here"; continue; }
    cxx_standards $cxx
    all_headers $cxx
    every_standard $cxx c++ "c++11 c++14 c++17 c++20" "$cxx_warnings"
done
echo "$compiled compilations were quiet"
[ "$compiled" -gt 0 ] || fail "no compiler was found"
finish
