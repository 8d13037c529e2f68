#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Remote atomics on each path: memory shared by all, by some and by no ranks; also in memory of the client, where softhca executes
# atomics differently from CPUs, so that a domain that mixed the two would lose updates.
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
    [ "$sanitizer" = no ] || return
    good 3 "$jobs/atomics-large" $turns
    good 3 "$jobs/atomics-everything" $turns
}

devices()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_AD_METHOD=device GASNET_VERBOSEENV=1"
    good 5 "$jobs/atomics-par" $turns
    plain='GEX_OP_ADD|GEX_OP_SUB|GEX_OP_INC|GEX_OP_DEC' fetching='GEX_OP_FADD|GEX_OP_FSUB|GEX_OP_FINC|GEX_OP_FDEC'
    says "gex_AD_Create: type GEX_DT_U64, operations $plain|GEX_OP_CAS|$fetching|GEX_OP_FCAS|GEX_OP_GET, 5 ranks: executed by devices (GASNET_AD_METHOD)"
    says "gex_AD_Create: type GEX_DT_U64, operations $plain|GEX_OP_SET|GEX_OP_CAS|$fetching|GEX_OP_SWAP|GEX_OP_FCAS|GEX_OP_GET, 5 ranks: executed by CPUs"
    SETTINGS="GASNET_NETWORKDEPTH_TOTAL=2 GASNET_BBUF_COUNT=1"
    good 3 "$jobs/atomics-par" $turns client
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_AD_METHOD=device"
    good 3 "$jobs/atomics-seq" $turns client
}

# With two rails an atomic whose completion is lost can't be repeated, so they are executed by messages; with one rail
# the job ends.
rails()
{
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || return
    SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_AD_METHOD=device GASNET_VERBOSEENV=1"
    good 2 "$jobs/atomics-seq" 10
    says 'executed by CPUs.*several queue pairs'
    says 'executed by devices' 0
    SETTINGS="SOFTHCA_FAULT=error:op=atomic,nth=30,status=retry_exc"
    job 2 "$jobs/atomics-seq" 10
    [ "$status" -ne 0 ] || failed "an atomic that failed was accepted"
    says 'atomic operation of 8 bytes to rank [01] .* failed'
    within 15
}

# wrong MISTAKE TEXT
wrong()
{
    job 2 "$jobs/atomics-seq" 1 "$1"
    [ "$status" -ne 0 ] || failed "mistake $1 was accepted"
    says "^trunkline.*$2"
    within 15
}

mistakes()
{
    [ "$sanitizer" = no ] || return
    SETTINGS="GASNET_AD_METHOD=message"
    wrong type 'gex_AD_Create: dt 0x3 is not exactly one of GEX_DT_I32'
    wrong user_type 'gex_AD_Create: dt 0x40 is not exactly one of GEX_DT_I32'
    wrong no_such_operation 'gex_AD_Create: ops 0xc: type 0x10 has the operations 0xffc0ff8'
    wrong hints 'gex_AD_Create: flags 0x5 have more than one of'
    wrong pair 'gex_AD_Create: the argument tm is not a team'
    wrong jobrank 'gex_AD_OpNB_U64: rank 1 of the job is not in the domain.s team'
    if [ "${TRUNKLINE_TEST_DEBUG:-no}" = no ]; then
        wrong outside "an atomic operation of rank 0 .* on 8 bytes at .*: this rank.s segment of endpoint 0 is"
        return
    fi
    wrong outside 'gex_AD_OpNB_U64: .*, +8) is not inside the segment of rank 1'
    wrong another_operation 'gex_AD_OpNB_U64: opcode 0x10 is not one of the domain.s operations 0x8'
    wrong another_type 'gex_AD_OpNB_U64: the domain has type 0x4'
    wrong unaligned 'gex_AD_OpNB_U64: address .* is not a multiple of 8'
    wrong locality 'gex_AD_OpNB_U64: GEX_FLAG_AD_MY_RANK, but the target is rank 1'
    wrong no_result 'gex_AD_OpNB_U64: result_p is NULL'
    wrong disagree 'gex_AD_Create: rank [01] gives dt 0x8, ops 0x'
}

# A client in C++ compiles without warnings.
cxx()
{
    [ "$sanitizer" = no ] && command -v g++ >/dev/null || return
    for optimisation in -O0 -O2; do
        libraries=$top_builddir/conduit
        g++ -std=c++17 $optimisation -Wall -Wextra -pedantic -Werror -DGASNET_SEQ -I"$top_srcdir/conduit/include" \
            -I"$top_srcdir/conduit/include/ibv-conduit" -I"$top_builddir/conduit/include" "$top_srcdir/tests/job/atomics_cxx.cc" \
            "$libraries/libgasnet-ibv-seq.so" "-Wl,-rpath,$libraries" -o "$scratch/cxx" >"$scratch/err" 2>&1
        [ ! -s "$scratch/err" ] || { status=1 failed "C++ $optimisation"; continue; }
        for reach in 0 1; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$reach"
            good 2 "$scratch/cxx"
        done
    done
}

# The thread sanitizer sees what several threads do, by memory, messages and devices.
threads()
{
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    for method in GASNET_SUPERNODE_MAXSIZE=0 GASNET_AD_METHOD=message GASNET_AD_METHOD=device; do
        SETTINGS=$method good 2 "$jobs/atomics-par" $turns
    done
}

if [ "$sanitizer" = thread ]; then
    threads
    finish
fi
# A debug library refuses clients that are compiled with optimisation.
[ "${TRUNKLINE_TEST_DEBUG:-no}" = yes ] || lane cxx cxx
lane shared shared
lane network network
lane mixed mixed
lane devices devices
lane rails rails
lane mistakes mistakes
finish
