#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Segments LARGE and EVERYTHING: memory of other ranks is registered on request, or its bytes are sent in messages. Runs the
# programs that FAST passes, with ample and with minimal limits.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "a sanitizer's tree builds the library for segments FAST alone"
few="GASNET_FIREHOSE_VERBOSE=1 GASNET_FIREHOSE_R=6 GASNET_FIREHOSE_MAXVICTIM_R=4 GASNET_FIREHOSE_MAXREGION_SIZE=64K"

plenty()
{
    SETTINGS="GASNET_FIREHOSE_VERBOSE=1" good 2 "$jobs/putget-large"
    says 'remote firehoses: [1-9][0-9]* hits, [1-9][0-9]* misses, 0 moves' 2
    good 3 "$jobs/am-large"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 3 "$jobs/nbi-large"
    JOB_THREADS=4 good 2 "$jobs/remapped_memory-large" 5
}

scarce()
{
    SETTINGS="$few" good 3 "$jobs/nbi-large"
    says 'remote firehoses: [1-9][0-9]* hits, [1-9][0-9]* misses, [1-9][0-9]* moves' 3
    SETTINGS="$few GASNET_NETWORKDEPTH_PP=2" JOB_THREADS=4 good 2 "$jobs/remapped_memory-large" 3
    # Nothing can be registered: all goes in messages.
    SETTINGS="GASNET_FIREHOSE_VERBOSE=1 SOFTHCA_FAULT=enomem:call=reg_mr,after=4" good 2 "$jobs/nbi-large"
    says 'remote firehoses: .* [1-9][0-9]* refusals' 2
}

everything()
{
    # The software device accesses memory by its address, so a region that should be invalid still works there; only the counts
    # show the error. A transfer looks up its regions even if the previous one had them (26 misses if not), and unmapped
    # regions are dropped.
    SETTINGS="GASNET_FIREHOSE_VERBOSE=1 GASNET_VERBOSEENV=1" good 2 "$jobs/any_address-everything"
    says 'remote firehoses: [1-9][0-9]* hits, [1-9][0-9][0-9] misses' 2
    if grep -q 'watched by userfaultfd' "$scratch/err"; then
        says ' firehose: .* [1-9][0-9]* invalidations' 2
    fi
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 3 "$jobs/any_address-everything"
    SETTINGS="$few" good 3 "$jobs/any_address-everything"
    good 2 "$jobs/putget-everything"
    good 3 "$jobs/am-everything"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 3 "$jobs/nbi-everything"
    JOB_THREADS=4 good 2 "$jobs/remapped_memory-everything" 5
}

refusals()
{
    SETTINGS="GASNET_USE_FIREHOSE=0" job 2 "$jobs/nbi-large"
    fails_with 1
    says '^trunkline.*GASNET_USE_FIREHOSE=0, but this library registers memory of other ranks on the fly'
    SETTINGS="GASNET_PUTINMOVE_LIMIT=4K" job 2 "$jobs/nbi-large"
    fails_with 2
    says 'GASNET_PUTINMOVE_LIMIT.*3072'
}

lane plenty plenty
lane scarce scarce
lane everything everything refusals
finish
