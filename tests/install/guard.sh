#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Objects of one mode do not link with the library of another, nor do objects with checks link with
# a library without checks, even if they only include the header; the linker's message names what
# the object needs. Right ones link, and bring the identification strings along.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: the guard is the same in a tree without sanitizers"
    exit 77
fi
make_scratch

checking=ndebug other=debug
[ "$TRUNKLINE_TEST_DEBUG" = yes ] && checking=debug other=ndebug
heap=nodebugmalloc
grep -q 'GASNETI_DEBUG_MALLOC 1' "$incdir/gasnet_config.h" && heap=debugmalloc

printf '#include <gasnetex.h>\nint main(void)\n{\n    return 0;\n}\n' >"$scratch/include.c"
printf '#include <gasnetex.h>\nint main(void)\n{\n    return gasnet_AMPoll();\n}\n' >"$scratch/poll.c"
printf '#include <gasnet_tools.h>\nint main(void)\n{\n    return 0;\n}\n' >"$scratch/tools.c"

# refused SYMBOL LIBRARY command...: compiles and links, fails to, and says SYMBOL
# shellcheck disable=SC2046 # lists of options
refused()
{
    symbol=$1 library=$2
    shift 2
    if "$@" $(pc --libs "$library") -o "$scratch/program" 2>"$scratch/err"; then
        fail "linked with $library: $*"
    elif ! grep -q "undefined.*$symbol" "$scratch/err"; then
        head -3 "$scratch/err"
        fail "the linker did not name $symbol: $*"
    fi
    refusals=$((refusals + 1))
}
refusals=0

# The same headers, but of a library with checks if ours has none, or vice versa
mkdir "$scratch/other"
cp -r "$incdir/gasnetex.h" "$incdir/gasnet_tools.h" "$incdir/gasnet-tools" "$scratch/other/"
sed -e "s/define GASNET_$(upper $checking) 1/define GASNET_$(upper $other) 1/" "$incdir/gasnet_config.h" \
    >"$scratch/other/gasnet_config.h"

# shellcheck disable=SC2046 # lists of options
conduit()
{
    for mode in $modes; do
        flags=$(pc --cflags "gasnet-ibv-$mode")
        for library in $modes; do
            [ "$mode" != "$library" ] || continue
            # shellcheck disable=SC2086
            refused "trunkline_needs_gasnet_ibv_${mode}_${checking}_fast_v1" "gasnet-ibv-$library" gcc "$scratch/include.c" $flags
        done
        # shellcheck disable=SC2086
        refused "trunkline_needs_gasnet_ibv_${mode}_${other}_fast_v1" "gasnet-ibv-$mode" \
            gcc "-I$scratch/other" "$scratch/poll.c" $flags
        # shellcheck disable=SC2086
        gcc -Wall -Wextra -Werror "$scratch/include.c" $flags $(pc --libs "gasnet-ibv-$mode") -o "$scratch/right" ||
            fail "an object of the right mode, $mode, does not link"
    done
}

# With all optimisations that remove unused code, in C and C++
# shellcheck disable=SC2046,SC2086 # lists of options
waste()
{
    optimised=
    [ $checking = debug ] || optimised=-O2
    for compiler in gcc g++ clang clang++; do
        command -v $compiler >/dev/null || continue
        case $compiler in
        *++) language=c++ options="-flto -Wl,--gc-sections" ;;
        *) language=c options="-ffunction-sections -fdata-sections -Wl,--gc-sections" ;;
        esac
        refused "trunkline_needs_gasnet_ibv_par_${checking}_fast_v1" gasnet-ibv-seq \
            $compiler $optimised $options -x $language $(pc --cflags gasnet-ibv-par) "$scratch/poll.c" -x none
        refused "trunkline_needs_gasnet_tools_seq_${checking}_${heap}_v1" gasnet_tools-par \
            $compiler $optimised $options -x $language $(pc --cflags gasnet_tools-seq) "$scratch/tools.c" -x none
    done
}

# shellcheck disable=SC2046,SC2086 # lists of options
tools()
{
    refused "trunkline_needs_gasnet_tools_par_${checking}_${heap}_v1" gasnet_tools-seq gcc $(pc --cflags gasnet_tools-par) "$scratch/tools.c"
    refused "trunkline_needs_gasnet_tools_seq_${checking}_${heap}_v1" gasnet-ibv-par gcc $(pc --cflags gasnet_tools-seq) "$scratch/tools.c"
    for mode in seq par; do
        refused "trunkline_needs_gasnet_tools_${mode}_${other}_${heap}_v1" "gasnet_tools-$mode" \
            gcc "-I$scratch/other" $(pc --cflags "gasnet_tools-$mode") "$scratch/tools.c"
    done
}

# shellcheck disable=SC2046 # lists of options
strings_of_a_program()
{
    gcc -Wl,--gc-sections $(pc --cflags gasnet-ibv-par) "$scratch/include.c" \
        $(pc --libs gasnet-ibv-par | sed "s,-lgasnet-ibv-par ,$libdir/libgasnet-ibv-par.a ,") -o "$scratch/static" ||
        fail "a program with the static library does not link"
    # shellcheck disable=SC2016 # these dollars are text
    for text in '$GASNetConduitName: IBV $' '$GASNetThreadModel: GASNET_PAR $' '$GASNetSSHSpawner: 1 $' '$GASNetMPISpawner: 1 $' '$GASNetPMISpawner: 1 $'; do
        grep -aqF "$text" "$scratch/static" || fail "a program with the static library does not contain $text"
    done
}

conduit
waste
tools
[ "$static" = no ] || strings_of_a_program
echo "$refusals wrong pairs of objects and libraries did not link"
[ $refusals -ge 15 ] || fail "there should be more"
finish
