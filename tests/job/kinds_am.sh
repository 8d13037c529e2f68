#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Longs with payloads in memory of accelerators, by each path. softgpu stands in for the driver.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
. "$top_srcdir/tests/job/accelerator.sh"
small="GASNET_MK_PIECE=8192 GASNET_MK_STAGING=131072"

mixes()
{
    for way in auto staged; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way" good 2 "$jobs/kinds_am-seq"
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way SOFTGPU=devices=2 $small" good 3 "$jobs/kinds_am-par" 3 2
    done
}
# The other vendor's memory, where writes by HCAs need a flush
hip()
{
    [ -z "$real" ] || return
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 KINDS_CLASS=hip" good 2 "$jobs/kinds_am-seq"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 KINDS_CLASS=hip SOFTGPU=devices=2" good 2 "$jobs/kinds_am-seq"
}
network() { mixes 1; }
neighbours() { mixes 0; }

# Few credits; segments registered on demand; hosts of two ranks
others()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=staged GASNET_NETWORKDEPTH_PP=2 $small" good 2 "$jobs/kinds_am-seq" 10
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" good 2 "$jobs/kinds_am-large"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 4 "$jobs/kinds_am-seq"
    good 1 "$jobs/kinds_am-seq"
}

refusals()
{
    for what in request reply; do
        SETTINGS="KINDS_REFUSED=$what" job 2 "$jobs/kinds_am-seq"
        grep -q "gex_AM_Prepare.*Long: .* memory of a device, for which Longs can't be prepared" "$scratch/err" &&
            [ "$status" -ne 0 ] || failed "a prepared $what was not refused by a line"
    done
}

lane network network
lane neighbours neighbours hip
lane others others refusals
finish
