#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Messages between endpoints other than the first of their process, over the network, between neighbours and mixed.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
# The thread sanitizer checks only runs with several threads.
if [ "$sanitizer" = thread ]; then
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    good 3 "$jobs/endpoint_am-par"
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/endpoint_am-par"
    finish
fi
good 1 "$jobs/endpoint_am-seq"
good 3 "$jobs/endpoint_am-par"
SETTINGS="GASNET_AM_CREDITS_PP=2 GASNET_NETWORKDEPTH_PP=2 GASNET_BBUF_COUNT=1" good 2 "$jobs/endpoint_am-seq"
# The segment of endpoint 0 is registered on the fly, those of other endpoints are not.
[ ! -x "$jobs/endpoint_am-large" ] || good 3 "$jobs/endpoint_am-large"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/endpoint_am-seq"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=2 good 3 "$jobs/endpoint_am-par"

# wrong SCENARIO TEXT
wrong()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 job 2 "$jobs/endpoint_am-seq" wrong "$1"
    [ "$status" -ne 0 ] || failed "scenario $1 was accepted"
    says "^trunkline.*$2"
    within 15
}
wrong 1 'gex_EP_RegisterHandlers: endpoint 3 was created without GEX_EP_CAPABILITY_AM'
wrong 2 'gex_AM_RequestShort: endpoint 3 was created without GEX_EP_CAPABILITY_AM'
wrong 3 'a message for handler 200 of endpoint 3 came from rank [01] .*none is registered here'
wrong 4 'a message for handler 204 of endpoint 2 came from rank [01] .*none is registered here'
wrong 5 "a message with 1 arguments came from rank [01] for handler 200 'a', which has 2"
wrong 6 'gex_AM_RequestShort: there is no endpoint 50; a process has up to 33'
wrong 8 'gex_TM_Split: a process has several members in the team; each needs a thread'
wrong 7 "a Short came from rank [01] for handler 255 'e', which gex_flags"
finish
