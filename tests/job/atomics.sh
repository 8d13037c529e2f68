#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Remote atomics, by each way of executing them: memory shared by all, by some and by none; in memory of the client's too.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
turns=60
[ "$sanitizer" = no ] || turns=10

shared()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0"
    good 1 "$jobs/atomics-seq" $turns
    good 2 "$jobs/atomics-par" $turns
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_AD_METHOD=message"
    good 2 "$jobs/atomics-seq" $turns
    good 3 "$jobs/atomics-par" $turns client
}

network()
{
    SETTINGS="GASNET_AD_METHOD=message"
    good 2 "$jobs/atomics-par" $turns
    SETTINGS="GASNET_AD_METHOD=cpu GASNET_AM_CREDITS_PP=1"
    good 3 "$jobs/atomics-seq" $turns
    SETTINGS=
    ! is_cheap 9 || good 9 "$jobs/atomics-seq" 10
}

mixed()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2"
    good 3 "$jobs/atomics-par" $turns
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_AD_METHOD=cpu"
    good 5 "$jobs/atomics-seq" $turns
}

on_demand()
{
    [ "$sanitizer" = no ] || return
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2"
    good 3 "$jobs/atomics-large" $turns
    good 3 "$jobs/atomics-everything" $turns
}

lane shared shared
lane network network
lane mixed mixed
lane on_demand on_demand
finish
