#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --simulate predicts the messages of a job exactly: frames of the launcher's head, bytes of its fences, requests to PMIx,
# connections and the datagrams that make them, messages of barriers and collectives, and acknowledgements; also where a host fails. Reports of the launcher are
# left out: how many events share one depends on time. With fewer connections than partners (GASNET_CONNECT_MAX) counts are close. Datagrams are compared where no two ranks may ask each other at once (not in
# reduce_all), and are equal where none was sent again. What is logarithmic grows so, and planted mistakes don't.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_CONNECT_STATIC=0

# predicted NAME: of the counts of the simulation
predicted()
{
    sed -n "s/.*[{,]\"$1\":\([0-9]*\).*/\1/p" <<<"${simulated#*counts}"
}

# counter NAME [TIME]: the sum over all ranks, of what they write when they meet for the first time or another
counter()
{
    awk -v "at=${2:-1}" 'FNR == at' "$scratch"/statistics.* | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

# of_head NAME: frames of a kind
of_head()
{
    awk -v kind="$1" '/head: of these/ { for (i = 1; i < NF; i++) if ($i == kind) n = $(i + 1) } END { print n + 0 }' "$scratch/err"
}

# bytes_of_head NAME: in the payloads of frames of a kind
bytes_of_head()
{
    awk -v kind="$1" '/head: bytes in them/ { for (i = 1; i < NF; i++) if ($i == kind) n = $(i + 1) } END { print n + 0 }' "$scratch/err"
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

# same_data NAME PREDICTED BYTES UNIT: equal but for a few units less. The ranks of a host differ in one word that may be equal by
# chance, free memory, and then it is not in the data of that host.
same_data()
{
    local less=$(($2 - $3))
    [ $less -ge 0 ] && [ $((less % $4)) = 0 ] && [ $less -le $((hosts * $4)) ] || failed "bytes of '$1': predicted $2, in the job $3"
}

# run RANKS HOSTS WORD...: a job on virtual hosts
run()
{
    local ranks=$1 hosts=$2 list='' i
    shift 2
    for ((i = 0; i < hosts; i++)); do
        list+=",=n$i:$((ranks / hosts))"
    done
    rm -rf "$scratch/meet" "$scratch"/statistics.*
    mkdir "$scratch/meet"
    SETTINGS="GASNET_IBV_PORTS_VERBOSE=2 GASNET_STATSFILE=$scratch/statistics.%.json SIMULATED_MEET=$scratch/meet" RUN="-v -v -H ${list#,}" \
        good "$ranks" "$jobs/simulated-seq" "$@"
}

# simulate RANKS HOSTS CALL...
simulate()
{
    local ranks=$1 hosts=$2
    shift 2
    words=$(printf ',%s' "$@")
    simulated=$("$GASNETRUN" -n "$ranks" -N "$hosts" "--simulate=start=fork$words" --json) || failed "no simulation"
}

# compare RANKS HOSTS NEIGHBOURHOOD CALL...
compare()
{
    local ranks=$1 hosts=$2 i
    export GASNET_SUPERNODE_MAXSIZE=$3
    shift 3
    run "$ranks" "$hosts" "$@"
    simulate "$ranks" "$hosts" "$@"
    for i in hello job go server fence fence_done done left; do
        same "frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
    i=$((4 * (ranks / hosts - 1)))
    if [ $i = 0 ]; then
        same "bytes of fences" "$(predicted fence_bytes)" "$(bytes_of_head fence)"
        same "bytes of their ends" "$(predicted done_bytes)" "$(bytes_of_head fence_done)"
    else
        same_data fence "$(predicted fence_bytes)" "$(bytes_of_head fence)" $i
        same_data fence_done "$(predicted done_bytes)" "$(bytes_of_head fence_done)" $((i * $(predicted go)))
    fi
    same "PMIx_Get" "$(predicted pmix_gets)" "$(requests 3)"
    same "PMIx_Put" "$(predicted pmix_puts)" "$(requests 5)"
    same "PMIx_Fence" "$(predicted pmix_fences)" $(($(requests 7) + ranks)) # the last one is still to come
    same "messages" "$(predicted messages)" "$(counter internal_sent)"
    same "acknowledgements" "$(predicted acks)" "$(counter acks_sent)"
    same "connections" "$(predicted connections)" "$(counter connections_made)"
    [[ $words == *reduce_all* ]] || same_datagrams "$(predicted datagrams)" "$(of_demand 1)" "$(of_demand 2)"
}

# credits RANKS SETTING=VALUE... CALL...: acknowledgements, of each rank on a host of its own, of the calls made once more. When a connection
# is new, an acknowledgement may have to wait until that end may send, and then another message may carry it: that depends on time.
credits()
{
    local ranks=$1 acks
    local -x GASNET_SUPERNODE_MAXSIZE=1
    shift
    while [[ $1 = *=* ]]; do
        local -x "${1?}"
        shift
    done
    run "$ranks" "$ranks" "$@" meet "$@"
    simulate "$ranks" "$ranks" "$@"
    acks=$(predicted acks) loans=$(predicted loan_messages)
    simulate "$ranks" "$ranks" "$@" "$@"
    same "messages" "$(predicted messages)" $(($(counter internal_sent) + $(counter internal_sent 2)))
    same "acknowledgements" $(($(predicted acks) - acks)) "$(counter acks_sent 2)"
    same "messages about loans" $(($(predicted loan_messages) - loans)) "$(counter loan_messages 2)"
}

compare 16 16 1 barrier:2 broadcast:64 reduce:64
export GASNET_SSH_OUT_DEGREE=4 # guards start guards
compare 64 16 0 barrier:3 broadcast:100000 reduce:2000 reduce_all:8
# Barriers by the tree and then by dissemination, and rings
compare 12 12 1 barrier:103 broadcast:500000 reduce:400000 reduce_all:100000

# One credit for each connection, and two; two for all connections together: broadcasts wait for them
credits 16 GASNET_AM_CREDITS_PP=1 barrier:4 broadcast:64 reduce:64 reduce_all:64 broadcast:300000
credits 16 GASNET_AM_CREDITS_PP=2 barrier:4 broadcast:64 reduce:64 broadcast:300000 reduce:300000
credits 16 GASNET_AM_CREDITS_TOTAL=2 barrier:4 broadcast:64 reduce:64 broadcast:300000
[ "$(predicted credit_waits)" -gt 0 ] || failed "no message waits for one of two credits"
# Shared receive queues with fewer buffers than credits: connections borrow, and a second time need not. How often depends on when
# credits come back.
credits 16 GASNET_USE_SRQ=1 GASNET_RBUF_SPARES=1 GASNET_RBUF_COUNT=100 barrier:4 broadcast:64 reduce:64 broadcast:500000
[ "$loans" -ge 2 ] && [ $((2 * $(counter loan_messages))) -ge "$loans" ] && [ "$(counter loan_messages)" -le $((2 * loans)) ] ||
    failed "messages about loans: predicted $loans, in the job $(counter loan_messages)"

# close_to WHAT PREDICTED MEASURED: within a half. Which connection is closed, and how often it is opened again, depends on when ranks
# use it: a new one is kept for 20 ms, and one with something in flight is not closed.
close_to()
{
    [ $((2 * $2)) -ge "$3" ] && [ $((2 * $3)) -ge "$2" ] || failed "$1: predicted $2, in the job $3"
}

# limited MAX CALL...: 16 ranks that may have MAX connections each
limited()
{
    local -x GASNET_SUPERNODE_MAXSIZE=1
    local max=$1 least
    shift
    simulate 16 16 "$@"
    least=$(predicted connections) # one for each pair
    local -x GASNET_CONNECT_MAX=$max
    run 16 16 "$@"
    simulate 16 16 "$@"
    same "messages of at most $max connections" "$(predicted messages)" "$(counter internal_sent)"
    close_to "connections, at most $max" "$(predicted connections)" "$(counter connections_made)"
    for i in "$(predicted connections) $(predicted connections_closed)" "$(counter connections_made) $(counter connections_closed)"; do
        [ "${i% *}" -ge "$least" ] && [ $((${i% *} - ${i#* })) -le $((16 * max)) ] ||
            failed "at most $max connections: made and closed $i, of $least"
    done
}
# Exactly the partners of reduce_all: none is closed
limited 4 reduce_all:8
same "connections" "$(predicted connections)" "$(counter connections_made)"
same "connections closed" 0 "$(predicted connections_closed)"
same "connections closed in the job" 0 "$(counter connections_closed)"
limited 4 barrier:2 reduce_all:8 broadcast:64 reduce:64
[ "$(predicted connections_closed)" -gt 0 ] && [ "$(counter connections_closed)" -gt 0 ] || failed "no connection is closed for others"
limited 2 barrier:2 reduce_all:8 broadcast:64
close_to "connections closed" "$(predicted connections_closed)" "$(counter connections_closed)"

# One host fails: rank 6 kills the guard above it, in the middle of a branch and at the head's own.
fail()
{
    local list='' i
    for ((i = 0; i < 12; i++)); do
        list+=",=n$i:1"
    done
    # shellcheck disable=SC2016 # of the rank's shell
    SETTINGS="GASNET_SSH_OUT_DEGREE=$1" RUN="-v -v -H ${list#,}" job 12 \
        sh -c 'if [ "$PMIX_RANK" = '"$2"' ]; then sleep 0.5; kill -9 $PPID; fi; exec sleep 30'
    fails_with 1 "a host was lost"
    simulated=$(GASNET_SSH_OUT_DEGREE=$1 "$GASNETRUN" -n 12 -N 12 "--simulate=start=fork,fail=$2" --json) || failed "no simulation"
    for i in hello job go server lost kill ending done left; do
        same "degree $1, host $2 fails: frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
}
fail 3 6
fail 3 8

# grows WHAT WORDS LEAST MOST: of the busiest rank, from 64 to 1024 hosts, in percent
grows()
{
    local few many
    few=$("$GASNETRUN" -n 256 -N 64 "--simulate=barrier:2$2" --json | sed "s/.*\"rank\":{[^}]*\"$1\":\([0-9]*\).*/\1/")
    many=$("$GASNETRUN" -n 4096 -N 1024 "--simulate=barrier:2$2" --json | sed "s/.*\"rank\":{[^}]*\"$1\":\([0-9]*\).*/\1/")
    [ $((100 * many)) -ge $((few * $3)) ] && [ $((100 * many)) -le $((few * $4)) ] ||
        failed "$1 of the busiest rank${2:+ with $2}: $few on 64 hosts, $many on 1024, not $3 to $4 %"
}
unset GASNET_SUPERNODE_MAXSIZE
grows messages "" 100 100
grows connections "" 100 100
grows messages ,reduce_all:8 100 200 # the logarithm of 1024 is 167 % of that of 64
# Mistakes show as what they are: linear.
grows messages ,plant=gather 1500 1700
grows connections ,plant=connect 1500 1700

# The same seed gives the same result, another one another.
for seed in 7 7 8; do
    "$GASNETRUN" -n 100000 -N 782 "--simulate=barrier:2,reduce_all:8,seed=$seed" --json >>"$scratch/seeds" || failed "no simulation"
done
[ "$(sort -u "$scratch/seeds" | wc -l)" = 2 ] || failed "seeds 7, 7 and 8 give $(sort -u "$scratch/seeds" | wc -l) results, not 2"

# limit WORDS TEXT: what is reached first
limit()
{
    local text
    text=$("$GASNETRUN" -n 1000000 -N 3907 "--simulate=barrier:2$1" | sed -n 's/^Limit: //p')
    [[ $text == *$2* ]] || failed "with $1 the limit is '$text', not '$2'"
}
limit "" 'the phase ranks'
limit ,qps=100 'queue pairs, and its device has 100'
limit ,qps=1000000,memory=4 'bytes of a host that has 4294967296'
# Shared receive queues are used where devices allow as many buffers as their connections need.
for srq in 32767 10000000; do
    "$GASNETRUN" -n 1000000 -N 3907 "--simulate=barrier:1,srq=$srq" --json | sed 's/.*"shared":\([a-z]*\).*/\1/'
done >"$scratch/shared"
[ "$(tr '\n' ' ' <"$scratch/shared")" = "false true " ] || failed "shared receive queues with 32767 and 10000000 buffers: $(cat "$scratch/shared")"

# wrong WORDS TEXT: refused in one line
wrong()
{
    "$GASNETRUN" -n 100 -N 10 "--simulate=$1" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ $status = 2 ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -q "$2" "$scratch/err" || failed "--simulate=$1: status $status, not 2 with '$2'"
}
wrong bogus=1 'unknown word bogus'
wrong fabric=ring 'fabric=ring: not one of switch, fattree, dragonfly'
wrong seed=x 'seed=x: not a number between 0 and'
wrong fail=10 'fail=10: not a number between 0 and 9'
wrong reduce:0 'reduce=0: not a number between 1 and'
wrong fabric=dragonfly,ports=4 'has 6 hosts at most, not 10; ports='
GASNET_CONNECT_MAX=4 wrong plant=connect 'not with GASNET_CONNECT_MAX=4'
wrong costs=/nonexistent 'costs=/nonexistent: No such file'
echo "message 3 us" >"$scratch/costs"
wrong "costs=$scratch/costs" 'line 1: message is in us, not in ns'
"$GASNETRUN" -n 2 --simulate=costs >"$scratch/costs" && "$GASNETRUN" -n 2 "--simulate=costs=$scratch/costs" >"$scratch/out" ||
    failed "--simulate=costs prints a file that it does not read"
finish
