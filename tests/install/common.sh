# shellcheck shell=sh disable=SC2034 # used where this is sourced
# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of this folder; sourced, not run. Sets `root` (where the copy is), `prefix`, `libdir`, `incdir`,
# `bindir` inside it, and `scratch` (removed at the end).

set -u
: "${top_builddir:?run through make check}" "${top_srcdir:?}" "${TRUNKLINE_TEST_PREFIX:?}"
here=$top_srcdir/tests/install
root=$top_builddir/tests/install/root
prefix=$root$TRUNKLINE_TEST_PREFIX
libdir=$root$TRUNKLINE_TEST_LIBDIR
incdir=$root$TRUNKLINE_TEST_INCLUDEDIR
bindir=$root$TRUNKLINE_TEST_BINDIR
modes="seq par parsync"
# Which kinds of library --disable-shared and --disable-static have left: yes or no
shared=${TRUNKLINE_TEST_SHARED:-yes}
static=${TRUNKLINE_TEST_STATIC:-yes}
twin=${TRUNKLINE_TEST_TWIN:-yes} # are there libgasnet-ibv-*-debug?
trace_twin=${TRUNKLINE_TEST_TRACE_TWIN:-no} # are there libgasnet-ibv-*-trace?
. "$top_srcdir/tests/failures.sh"

make_scratch()
{
    scratch=$(mktemp -d "$top_builddir/tests/install/scratch-XXXXXX") || exit 1
    trap 'rm -rf "$scratch"' EXIT
}

need_root()
{
    [ -d "$prefix" ] && return
    echo "there is no installed copy in $prefix: tests/install/tree.sh makes it"
    exit 1
}

upper()
{
    echo "$1" | tr '[:lower:]' '[:upper:]'
}

# As if `make` ran outside of this one: it must not use our job server.
plain_make()
{
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES make --no-print-directory "$@"
}

# pkg-config as a user of the moved copy calls it.
pc()
{
    PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config "--define-variable=prefix=$prefix" "$@"
}
