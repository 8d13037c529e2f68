#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --simulate predicts the messages of a job exactly: frames of the launcher's head, bytes of its fences, requests to PMIx,
# connections and the datagrams that make them, messages of barriers and collectives, acknowledgements, and those of the end, by which ranks
# agree, elect and notify; also where one rank exits alone, or a host fails. Reports of the launcher are left out: how many events share one
# depends on time. With fewer connections than partners (GASNET_CONNECT_MAX) counts are close. Datagrams are compared where no two ranks may
# ask each other at once (not in reduce_all), and are equal where none was sent again. What is logarithmic grows so, and planted mistakes
# don't.
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

# of_exit LETTER: messages of the end that ranks have sent
of_exit()
{
    tr -cd "$1" <"$scratch/exit" | wc -c
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

# list HOSTS RANKS: virtual hosts of so many ranks each
list()
{
    seq -s , -f "=n%g:$2" 0 $(($1 - 1))
}

# run RANKS HOSTS WORD...: a job on virtual hosts
run()
{
    local ranks=$1 hosts=$2
    shift 2
    rm -rf "$scratch/meet" "$scratch"/statistics.*
    mkdir "$scratch/meet"
    SETTINGS="GASNET_IBV_PORTS_VERBOSE=2 GASNET_STATSFILE=$scratch/statistics.%.json SIMULATED_MEET=$scratch/meet" \
        RUN="-v -v -H $(list "$hosts" $((ranks / hosts)))" \
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
    simulate "$ranks" "$hosts" "$@"
    # A rank that does not run for the grace period adds its code to the last fence: such a run says nothing.
    for i in 1 2 3; do
        run "$ranks" "$hosts" "$@"
        [ "$(bytes_of_head fence)" -le "$(predicted fence_bytes)" ] && break
    done
    for i in hello job go server fence fence_done done left; do
        same "frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
    i=$((4 * (ranks / hosts - 1)))
    if [ $i = 0 ] || [ "$hosts" = 1 ]; then
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

# credits RANKS SETTING=VALUE... CALL...: acknowledgements, on 16 hosts, of the calls made once more. When a connection
# is new, an acknowledgement may have to wait until that end may send, and then another message may carry it: that depends on time.
# `runs`: jobs at most, until acknowledgements are equal; `neighbours`: GASNET_SUPERNODE_MAXSIZE, 1 if unset.
credits()
{
    local ranks=$1 acks again i
    local -x GASNET_SUPERNODE_MAXSIZE=${neighbours:-1}
    shift
    while [[ $1 = *=* ]]; do
        local -x "${1?}"
        shift
    done
    simulate "$ranks" 16 "$@"
    acks=$(predicted acks) loans=$(predicted loan_messages)
    simulate "$ranks" 16 "$@" "$@"
    again=$(($(predicted acks) - acks))
    for ((i = 0; i < ${runs:-1}; i++)); do
        run "$ranks" 16 "$@" meet "$@"
        [ "$again" = "$(counter acks_sent 2)" ] && break
    done
    same "messages" "$(predicted messages)" $(($(counter internal_sent) + $(counter internal_sent 2)))
    same "acknowledgements of $*" "$again" "$(counter acks_sent 2)"
    same "messages about loans" $(($(predicted loan_messages) - loans)) "$(counter loan_messages 2)"
}

compare 8 1 0 barrier:2 # its fences stay in the host's server
compare 16 16 1 barrier:2 broadcast:64 reduce:64
compare 12 3 1 barrier:2                         # ranks of a host that share no memory have fewer words that differ
compare 144 9 0 barrier:2                        # the number of a rank of the last host takes another byte in the data of fences
export GASNET_SSH_OUT_DEGREE=4 # guards start guards
compare 64 16 0 barrier:3 broadcast:100000 reduce:2000 reduce_all:8
# Barriers by the tree and then by dissemination, and rings
compare 12 12 1 barrier:103 broadcast:500000 reduce:400000 reduce_all:100000

# Three connections to each peer. Each has a port of its own in the simulation, and all have one here, so peer infos differ.
export GASNET_NUM_QPS=3
run 12 12 barrier:2
simulate 12 12 barrier:2
unset GASNET_NUM_QPS
same "three connections to each peer" "$(predicted connections)" "$(counter connections_made)"

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

# With a small slack the messages that a rank sends to another without waiting in between share an acknowledgement, because a poll takes them
# together: its part of a reduction and its first message of the next collective, equal messages of several, the parts of a payload. Time may
# change that for a rank that does not run, or polls in between: such a job says nothing. A barrier at both ends, because ranks of the
# simulation do not meet between them.
together()
{
    local runs=5
    credits "$@" barrier:1 reduce:64 reduce_all:64 reduce:64 barrier:1
}
together 16 GASNET_AM_CREDITS_SLACK=0
together 16 GASNET_AM_CREDITS_SLACK=2
neighbours=0 together 64 GASNET_AM_CREDITS_SLACK=0
# A queue that connections share, and connections that replace each other, hand messages up one by one.
together 16 GASNET_AM_CREDITS_SLACK=0 GASNET_USE_SRQ=1
together 16 GASNET_AM_CREDITS_SLACK=0 GASNET_NUM_QPS=3
# No more than a third of the credits is held back until the end of a batch: of three, one.
together 16 GASNET_AM_CREDITS_SLACK=0 GASNET_AM_CREDITS_PP=3

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

# end RANKS HOSTS NEIGHBOURHOOD WORD CODE: one exits alone. Time decides where a process does not run for longer than the grace period, 0.2 s
# here: others ask then, and go to the fence before all have agreed. Such a run says nothing, and is repeated. If all but one exit, time
# decides always: tests/unit/exit/test_leaving has that, by a clock of its own.
end()
{
    local tries i
    for tries in 1 2 3; do
        : >"$scratch/exit"
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$3 GASNET_EXITTIMEOUT=20 JOB_EXIT_CALLS=$scratch/exit" RUN="-v -v -H $(list "$2" $(($1 / $2)))" \
            job "$1" "$jobs/simulated-seq" barrier:2 "$4"
        [ "$5" = 0 ] || fails_with "$5" "$4"
        simulated=$(GASNET_SUPERNODE_MAXSIZE=$3 "$GASNETRUN" -n "$1" -N "$2" "--simulate=start=fork,barrier:2,$4" --json) || failed "no simulation"
        [ "$(predicted exit_agree) $(predicted exit_elect) $(predicted exit_notices)" = "$(of_exit a) $(of_exit e) $(of_exit n)" ] && break
    done
    same "$4: messages that agree" "$(predicted exit_agree)" "$(of_exit a)"
    same "$4: messages that elect" "$(predicted exit_elect)" "$(of_exit e)"
    same "$4: notices" "$(predicted exit_notices)" "$(of_exit n)"
    [ "$(predicted exit_notices)" = $(($1 - 1)) ] || failed "$4: $(predicted exit_notices) notices, not one to each other rank"
    for i in hello job go server fence fence_done done left abort lost; do
        same "$4: frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
    # Guards that have left before the head has seen the last exit get no order.
    [ "$(of_head kill)" -le "$(predicted kill)" ] || failed "$4: predicted $(predicted kill) orders to end at most, in the job $(of_head kill)"
    local local=$(($1 / $2)) less=$(($(predicted fence_bytes) - $(bytes_of_head fence)))
    [ $local -le 4 ] || return 0 # of many ranks words of peer infos are equal by chance so that sizes take a byte less
    [ $less -ge 0 ] && [ $less -le $((16 * local * $2)) ] && [ $((less % 4)) = 0 ] ||
        failed "$4: bytes of fences: predicted $(predicted fence_bytes), in the job $(bytes_of_head fence)"
}
end 64 16 0 exits:5 1
end 64 16 0 exits:0 1
end 16 16 1 exits:9 1
end 16 2 0 exits:3 1 # no tree: the leader notifies each rank itself

# fail DEGREE RANK WAY [NAME=VALUE...]: its host fails before the others enter a barrier. Closed: the guard above sees the end of the
# connection, and the head ends the job before others notice. Silent: those notice first that send to that rank.
fail()
{
    local i
    SETTINGS="GASNET_SSH_OUT_DEGREE=$1 GASNET_SUPERNODE_MAXSIZE=1 ${*:4}" RUN="-v -v -H $(list 12 1)" job 12 "$jobs/simulated-seq" barrier:2 "fail:$2"
    fails_with 1 "a host was lost"
    simulated=$(env GASNET_SSH_OUT_DEGREE="$1" "${@:4}" "$GASNETRUN" -n 12 -N 12 "--simulate=start=fork,barrier:2,fail=$2,failure=$3" --json) ||
        failed "no simulation"
    for i in hello job go server fence fence_done lost kill ending done left abort; do
        same "degree $1, host $2 fails, $3: frames '$i' of the head" "$(predicted $i)" "$(of_head $i)"
    done
}
fail 3 6 closed
fail 3 8 closed
# Ranks 2 and 5 are below rank 1 in the tree of leaders. The guard counts as stuck after its 5 intervals.
fail 3 1 silent JOB_STOPS=1 GASNET_QP_TIMEOUT=8 GASNET_SSH_HEARTBEAT=0.5
[ "$(predicted abort)" = 2 ] || failed "$(predicted abort) ranks notice that rank 1 is silent, not 2"

# grows WHAT WORDS LEAST MOST [PART]: of the busiest rank, in all or at the end, from 64 to 1024 hosts, in percent
grows()
{
    local few many part=${5:-rank}
    few=$("$GASNETRUN" -n 256 -N 64 "--simulate=barrier:2$2" --json | sed "s/.*\"$part\":{[^}]*\"$1\":\([0-9]*\).*/\1/")
    many=$("$GASNETRUN" -n 4096 -N 1024 "--simulate=barrier:2$2" --json | sed "s/.*\"$part\":{[^}]*\"$1\":\([0-9]*\).*/\1/")
    [ $((100 * many)) -ge $((few * $3)) ] && [ $((100 * many)) -le $((few * $4)) ] ||
        failed "$1 of the busiest rank${2:+ with $2}: $few on 64 hosts, $many on 1024, not $3 to $4 %"
}
unset GASNET_SUPERNODE_MAXSIZE
grows messages "" 100 100
grows connections "" 100 100
grows messages ,reduce_all:8 100 200 # the logarithm of 1024 is 167 % of that of 64
grows messages ,exits=77 100 100 end
grows messages ,late=77 100 200 end
grows messages ,fail=1 100 100 end
grows head_frames ,exits=77 1200 1600 end # linear in hosts
# Mistakes show as what they are: linear.
grows messages ,exits=77,plant=notify 1500 4000 end
grows messages ,late=77,plant=ask 1500 4000 end
grows messages ,plant=gather 1500 1700
grows connections ,plant=connect 1500 1700

# The same seed gives the same result, another one another.
for seed in 7 7 8; do
    "$GASNETRUN" -n 100000 -N 782 "--simulate=barrier:2,reduce_all:8,seed=$seed" --json >>"$scratch/seeds" || failed "no simulation"
    "$GASNETRUN" -n 100000 -N 782 "--simulate=barrier:2,late=5,seed=$seed" --json >>"$scratch/late" || failed "no simulation of a late rank"
done
[ "$(sort -u "$scratch/seeds" | wc -l)" = 2 ] || failed "seeds 7, 7 and 8 give $(sort -u "$scratch/seeds" | wc -l) results, not 2"
[ "$(sort -u "$scratch/late" | wc -l)" = 2 ] || failed "seeds 7, 7 and 8 give $(sort -u "$scratch/late" | wc -l) results of a late rank, not 2"
# A million ranks, in time: without the tree the notices alone take longer than GASNET_EXITTIMEOUT, which is an error here.
for word in exits=777 late=777 fail=777; do
    timeout 60 "$GASNETRUN" -n 1000000 -N 3907 "--simulate=barrier:2,$word" --json >/dev/null || failed "a million ranks, $word: status $?"
done

# A silent host that neither the launcher nor a device is to notice. With one of both, ranks 2 and 5 or the launcher end the job.
silent=start=fork,barrier:2,fail=1,failure=silent
GASNET_SSH_HEARTBEAT=0 GASNET_QP_TIMEOUT=0 timeout 20 "$GASNETRUN" -n 12 -N 12 "--simulate=$silent" >"$scratch/out" 2>"$scratch/err"
[ $? = 1 ] && grep -q 'the job does not end: nobody notices that host 1 is silent' "$scratch/err" || failed "a silent host is noticed: $(cat "$scratch/err")"
for setting in GASNET_SSH_HEARTBEAT=0 GASNET_QP_TIMEOUT=0; do
    env $setting "$GASNETRUN" -n 12 -N 12 "--simulate=$silent" | awk '$1 == "failure" { print int($2) }'
done >"$scratch/silent"
[ "$(tr '\n' ' ' <"$scratch/silent")" = "14 25 " ] || failed "a silent host without heartbeats, and without timeouts, takes $(cat "$scratch/silent") s, not 14 and 25"

# limit WORDS TEXT: what is reached first
limit()
{
    local text
    text=$("$GASNETRUN" -n 1000000 -N 3907 "--simulate=barrier:2$1" | sed -n 's/^Limit: //p')
    [[ $text == *$2* ]] || failed "with $1 the limit is '$text', not '$2'"
}
# The costs decide which phase is the longest, and those built in are measured anew.
echo "host.dial 1000000 ns" >"$scratch/quick"
echo "host.dial 100000000000 ns" >"$scratch/slow"
limit ",costs=$scratch/quick" 'the phase ranks'
limit ",costs=$scratch/slow" 'the phase guards'
limit ,qps=100 'queue pairs, and its device has 100'
limit ,qps=1000000,memory=4 'bytes of a host that has 4294967296'
# Shared receive queues are used where devices allow as many buffers as their connections need.
for srq in 32767 10000000; do
    "$GASNETRUN" -n 1000000 -N 3907 "--simulate=barrier:1,srq=$srq" --json | sed 's/.*"shared":\([a-z]*\).*/\1/'
done >"$scratch/shared"
[ "$(tr '\n' ' ' <"$scratch/shared")" = "false true " ] || failed "shared receive queues with 32767 and 10000000 buffers: $(cat "$scratch/shared")"

# The manual names each count.
simulate 4 2 barrier:1
for name in $(sed 's/.*"counts":{\([^}]*\)}.*/\1/; s/:[0-9]*//g; s/[",]/ /g' <<<"$simulated"); do
    sed -n '/^\.B counts/,/^\.RE/p' "$top_srcdir/man/gasnetrun_ibv.1" | grep -qw "$name" || failed "gasnetrun_ibv(1) does not name the count $name"
done

# wrong WORDS TEXT: refused in one line
wrong()
{
    "$GASNETRUN" -n 100 -N 10 "--simulate=$1" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ $status = 2 ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -q "$2" "$scratch/err" || failed "--simulate=$1: status $status, not 2 with '$2'"
}
wrong bogus=1 'unknown word bogus'
wrong fabric=ring 'fabric=ring: not one of switch, fattree, dragonfly'
wrong exits=100 'exits=100: not a number between 0 and 99'
wrong late=1,exits=2 'more than one of fail, exits and late'
wrong failure=quick 'not one of closed, silent'
wrong seed=x 'seed=x: not a number between 0 and'
wrong fail=10 'fail=10: not a number between 0 and 9'
wrong failure=silent 'fail=HOST is missing'
wrong fail=1,code=3 'code is that of an exit'
wrong broadcast 'broadcast lacks its number of bytes: broadcast:BYTES'
wrong reduce:,barrier 'reduce lacks its number of bytes'
wrong reduce:0 'reduce:0: not a number between 1 and'
wrong broadcast:8:0 'broadcast:8:0: not a number between 1 and'
wrong barrier:2:3 'barrier:2:3: not a number between 1 and'
wrong fabric=dragonfly,ports=4 'has 6 hosts at most, not 10; ports='
GASNET_CONNECT_MAX=4 wrong plant=connect 'not with GASNET_CONNECT_MAX=4'
GASNET_CONNECT_STATIC=1 wrong barrier 'on demand: not with GASNET_CONNECT_STATIC=1'
GASNET_CONNECT_DYNAMIC=0 wrong barrier 'on demand: not with GASNET_CONNECT_DYNAMIC=0'
wrong costs=/dev/zero 'costs=/dev/zero: it is not text'
wrong costs=/nonexistent 'costs=/nonexistent: No such file'
"$GASNETRUN" -n 1 --simulate=late=0 2>"$scratch/err"
[ $? = 2 ] && grep -q 'late: there is no other process' "$scratch/err" || failed "one process that is late: $(cat "$scratch/err")"
"$GASNETRUN" -n 2 --json true 2>"$scratch/err"
[ $? = 2 ] && grep -q -- '--json is for gasnetrun_ibv --top and --simulate' "$scratch/err" || failed "--json without --simulate: $(cat "$scratch/err")"
echo "message 3 us" >"$scratch/costs"
wrong "costs=$scratch/costs" 'line 1: message is in us, not in ns'
wrong "costs=$scratch" "costs=$scratch: Is a directory"
"$GASNETRUN" -n 2 --simulate=costs >"$scratch/costs" && "$GASNETRUN" -n 2 "--simulate=costs=$scratch/costs" >"$scratch/out" ||
    failed "--simulate=costs prints a file that it does not read"
finish
