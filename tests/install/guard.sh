#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Objects of one mode do not link with the library of another, nor checking ones with a library that does not check; the
# linker's message names the mode.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch

checking=ndebug
[ "$TRUNKLINE_TEST_DEBUG" = yes ] && checking=debug

# link_error MODE "first options" LIBRARY EXPECTED
# shellcheck disable=SC2046,SC2086 # lists of options
link_error()
{
    gcc $2 $(pc --cflags "gasnet-ibv-$1") -c "$here/client.c" -o "$scratch/client.o" || {
        fail "client.c does not compile for $1"
        return
    }
    if gcc "$scratch/client.o" $(pc --libs "gasnet-ibv-$3") -o "$scratch/client" 2>"$scratch/err"; then
        fail "an object for $4 linked with the library for ${3}_$checking"
    elif ! grep -q "trunkline_client_init_ibv_${4}_v1" "$scratch/err"; then
        head -3 "$scratch/err"
        fail "the linker did not name $4"
    fi
}

link_error par "" parsync "par_$checking"
link_error seq "" parsync "seq_$checking"
link_error parsync "" seq "parsync_$checking"
link_error par "" seq "par_$checking"
link_error seq "" par "seq_$checking"
link_error parsync "" par "parsync_$checking"

# tools_error MODE "first options" LIBRARY EXPECTED
# shellcheck disable=SC2046,SC2086 # lists of options
tools_error()
{
    gcc $2 $(pc --cflags "gasnet_tools-$1") -c "$here/tools.c" -o "$scratch/tools.o" || {
        fail "tools.c does not compile for $1"
        return
    }
    if gcc "$scratch/tools.o" $(pc --libs "$3") -o "$scratch/tools" 2>"$scratch/err"; then
        fail "an object of the tools for $4 linked with $3"
    elif ! grep -q "trunkline_tools_${4}_" "$scratch/err"; then
        head -3 "$scratch/err"
        fail "the linker did not name $4"
    fi
}

tools_error par "" gasnet_tools-seq "par_$checking"
tools_error seq "" gasnet_tools-par "seq_$checking"
tools_error seq "" gasnet-ibv-par "seq_$checking"

# Headers of a library that checks in front of one that does not, or the other way round
other=debug
[ $checking = debug ] && other=ndebug
mkdir "$scratch/other"
cp -r "$incdir/gasnetex.h" "$incdir/gasnet_tools.h" "$incdir/gasnet-tools" "$scratch/other/"
sed -e "s/define GASNET_$(upper $checking) 1/define GASNET_$(upper $other) 1/" "$incdir/gasnet_config.h" \
    >"$scratch/other/gasnet_config.h"
link_error seq "-I$scratch/other" seq "seq_$other"
tools_error par "-I$scratch/other" gasnet_tools-par "par_$other"
finish
