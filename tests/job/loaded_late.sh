#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program can open the library at run time: its thread-local variables fit the space that the dynamic linker reserves for such
# libraries, and a job runs from Python, by ctypes.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

tls_max=256 # bytes in each library; glibc keeps 512 for all that are opened late, of which others take some
libraries=$top_builddir/conduit

# tls_of LIBRARY: bytes of its thread-local block
tls_of()
{
    local size
    size=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
    echo $((${size:-0}))
}

sizes()
{
    for library in "$libraries"/libgasnet-ibv-*.so "$libraries"/tools/libgasnet_tools-*.so; do
        echo "${library##*/}: $(tls_of "$library") bytes of TLS"
        [ "$(tls_of "$library")" -le "$tls_max" ] || failed "$library has $(tls_of "$library") bytes of TLS, more than $tls_max"
    done
}

# from_python MODE SETTINGS
from_python()
{
    SETTINGS=$2 good 2 python3 "$top_srcdir/tests/job/loaded_late.py" "$libraries/libgasnet-ibv-$1.so"
    [ "$(grep -c '^rank [01] was answered [369]00 times$' "$scratch/out")" -eq 2 ] || failed "$1: $(cat "$scratch/out")"
}

[ "$TRUNKLINE_TEST_SHARED" = yes ] || skip "no shared libraries in this tree"
sizes
command -v python3 >/dev/null || skip "python3 is not here"
[ "$sanitizer" = no ] || finish # its library must be loaded first, and python3 is not linked with it
for mode in seq par; do
    from_python $mode GASNET_SUPERNODE_MAXSIZE=1
done
from_python par GASNET_SUPERNODE_MAXSIZE=0
finish
