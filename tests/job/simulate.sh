#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --simulate predicts the messages of a job exactly: frames of the launcher's head, requests to PMIx, connections and the
# datagrams that make them, messages of barriers and collectives. Reports of the launcher are left out: how many events share one depends on
# time. Datagrams are
# compared where no two ranks may ask each other at once (not in reduce_all), and are equal where none was sent again.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_CONNECT_STATIC=0

# predicted NAME: of the counts of the simulation
predicted()
{
    sed -n "s/.*[{,]\"$1\":\([0-9]*\).*/\1/p" <<<"${simulated#*counts}"
}

# counter NAME: the sum over all ranks
counter()
{
    cat "$scratch"/statistics.* | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

# of_head NAME: frames of a kind
of_head()
{
    sed -n "s/.*head: of these.* $1 \([0-9]*\).*/\1/p" "$scratch/err"
}

# requests NUMBER: the sum of a column of what ranks print
requests()
{
    awk -v at="$1" '/^rank/ { n += $at } END { print n + 0 }' "$scratch/out"
}

# of_demand NUMBER: the same of what they say about connections: datagrams, and those sent again
of_demand()
{
    sed -n 's/.*connections on demand: .* rank; \([0-9]*\) datagrams, \([0-9]*\) of them again.*/\1 \2/p' "$scratch/err" |
        awk -v at="$1" '{ n += $at } END { print n + 0 }'
}

same()
{
    [ "$2" = "$3" ] || failed "$1: predicted $2, in the job $3"
}

# A datagram that was sent again may be answered again, and that answer too.
same_datagrams()
{
    [ "$2" -ge "$1" ] && [ "$2" -le $(($1 + 3 * $3)) ] || failed "datagrams: predicted $1, in the job $2, $3 of them again"
}

# compare RANKS HOSTS NEIGHBOURHOOD CALL...
compare()
{
    local ranks=$1 hosts=$2 list='' i
    export GASNET_SUPERNODE_MAXSIZE=$3
    shift 3
    for ((i = 0; i < hosts; i++)); do
        list+=",=n$i:$((ranks / hosts))"
    done
    SETTINGS="GASNET_IBV_PORTS_VERBOSE=2 GASNET_STATSFILE=$scratch/statistics.%.json" RUN="-v -v -H ${list#,}" \
        good "$ranks" "$jobs/simulated-seq" "$@"
    words=$(printf ',%s' "$@")
    simulated=$("$GASNETRUN" -n "$ranks" -N "$hosts" "--simulate=start=fork$words" --json) || failed "no simulation"
    for i in hello job go server fence fence_done done left; do
        same "frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
    same "PMIx_Get" "$(predicted pmix_gets)" "$(requests 3)"
    same "PMIx_Put" "$(predicted pmix_puts)" "$(requests 5)"
    same "PMIx_Fence" "$(predicted pmix_fences)" $(($(requests 7) + ranks)) # the last one is still to come
    same "messages" "$(predicted messages)" "$(counter internal_sent)"
    same "connections" "$(predicted connections)" "$(counter connections_made)"
    [[ $words == *reduce_all* ]] || same_datagrams "$(predicted datagrams)" "$(of_demand 1)" "$(of_demand 2)"
    rm -f "$scratch"/statistics.*
}

compare 16 16 1 barrier:2 broadcast:64 reduce:64
compare 64 16 0 barrier:3 broadcast:100000 reduce:2000 reduce_all:8
finish
