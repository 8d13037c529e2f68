#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The options of configure that set defaults of the library: each legal form gives the default that it names, each other one
# is refused in one line, and the library obeys. configure is stopped where it looks for a compiler: by then it knows.
# shellcheck source=tests/install/common.sh
. "${top_srcdir:?}/tests/install/common.sh"
make_scratch
cd "$scratch" || exit 1

# gives 'HCAS|PORTS|FENCED' OPTION...
gives()
{
    want=$1
    shift
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1
    # The compiler's part of the log repeats the defines behind a bar.
    got=$(for name in MAX_HCAS IBV_PORTS FENCED_PUTS; do
        sed -n "s/^#define TK_DEFAULT_$name \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" config.log | tail -n 1
    done | paste -s -d '|')
    [ "$got" = "$want" ] || fail "configure $*: '$got', not '$want'"
    rm -f config.log
}

# refuses WORDS OPTION...
refuses()
{
    words=$1
    shift
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1 && fail "configure takes $*"
    grep -q -e "^configure: error: $words" log || fail "configure $* does not say '$words' but: $(head -n 3 log)"
    rm -f config.log
}

gives '1||0'
gives '2||0' --enable-ibv-multirail
gives '4||0' --with-ibv-max-hcas=4
gives '1||0' --with-ibv-max-hcas=1 --enable-ibv-multirail
gives '1||0' --disable-ibv-multirail --with-ibv-max-hcas=4
gives '40|mlx5_0:1,2++mlx5_3|1' --with-ibv-ports=mlx5_0:1,2++mlx5_3 --with-ibv-fenced-puts --with-ibv-max-hcas=40
gives '1||0' --without-ibv-ports --without-ibv-fenced-puts
gives '1||0' --enable-segment-everything --disable-segment-large
refuses '--enable-segment-large=some is neither yes nor no' --enable-segment-large=some
refuses 'of --enable-segment-fast, -large and -everything only one' --enable-segment-large --enable-segment-everything
refuses '--enable-ibv-multirail=4 is neither yes nor no' --enable-ibv-multirail=4
refuses '--with-ibv-max-hcas=0 is not a number from 1 to 9999' --with-ibv-max-hcas=0
refuses '--with-ibv-max-hcas=yes is not a number' --with-ibv-max-hcas
refuses '--with-ibv-ports needs a list' --with-ibv-ports
refuses '--with-ibv-ports=a: is not of the form' --with-ibv-ports=a:
refuses '--with-ibv-ports=a b is not of the form' '--with-ibv-ports=a b'
refuses '--with-ibv-fenced-puts=maybe is neither 0 nor 1' --with-ibv-fenced-puts=maybe

# The table of settings, compiled with another default.
sed 's/^#define TK_DEFAULT_IBV_PORTS .*/#define TK_DEFAULT_IBV_PORTS "mlx5_9"/' "$top_builddir/config.h" >config.h
cat >show.c <<END
#include "config.h"
#include "settings/settings.h"
int main(void)
{
    tk_settings_print(stdout);
    return 0;
}
END
# shellcheck disable=SC2086 # a command and its options
${TRUNKLINE_TEST_CC:-cc} -I. -I"$top_srcdir/conduit" -o show show.c "$top_srcdir/conduit/settings/settings_table.c" \
    "$top_srcdir/conduit/settings/settings_print.c" || fail "the table of settings does not compile by itself"
./show | grep -A1 '^GASNET_IBV_PORTS$' | grep -q 'default mlx5_9' || fail "GASNET_IBV_PORTS has not the default of the build"

# The record of the start names such a default; a library without one has no such line.
# shellcheck disable=SC2086 # a command and its options
tell()
{
    ${TRUNKLINE_TEST_CC:-cc} "$@" -DGASNET_SEQ=1 -O1 -I"$top_srcdir/conduit" -I"$top_srcdir/conduit/include" \
        -I"$top_srcdir/conduit/include/ibv-conduit" -I"$top_builddir/conduit/include" $(pkg-config --cflags hwloc pmix libibverbs) \
        -c -o tell.o "$top_srcdir/conduit/start/tell.c" || fail "tell.c does not compile by itself"
    strings -a tell.o
}
tell -I. | grep -q '^GASNET_IBV_PORTS=%s is the default of this build' || fail "the record does not name the default"
tell -I"$top_builddir" | grep 'default of this build' && fail "the record names a default that is none"
finish
