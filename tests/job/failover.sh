#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ports that die in the middle of a job: every call mixed, all data verified, while the primary port or another one dies at some
# operation; nothing is lost or executed twice while a port is left; when no port is left the job ends with a message.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
export GASNET_QP_TIMEOUT=10 # 4 ms; seven tries
stripes="GASNET_PUT_STRIPE_SZ=16 GASNET_GET_STRIPE_SZ=8K"
two_ports="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 $stripes"
two_devices="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 $stripes"
four="SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2+softhca1:1,2"

# Only the rank that $VICTIM names has the fault.
cat >"$scratch/rank" <<'END'
#!/bin/sh
[ "$PMIX_RANK" = "$VICTIM" ] && export SOFTHCA_FAULT="$FAULT"
exec "$@"
END
chmod 755 "$scratch/rank"
rank=$scratch/rank

# survives N PROGRAM...: a short program may end before that operation; most do not.
runs=0 deaths=0
survives()
{
    good "$@"
    says 'failed on' 0
    runs=$((runs + 1))
    ! grep -q 'no longer reaches rank' "$scratch/err" || deaths=$((deaths + 1))
}

most_had_deaths()
{
    [ $((2 * deaths)) -ge "$runs" ] || failed "a port died in $deaths of $runs jobs only"
}

# Ranks 0 and 1 have their messages on the second rail. It dies at these operations: early enough to be reached at once, and
# printed when a job fails.
moments=${MOMENTS:-$((1 + RANDOM % 30))}
one_host()
{
    for nth in $moments; do
        for fault in "op=send,nth=$nth" "op=any,nth=$nth,lost=ack"; do
            SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=2,$fault" survives 2 "$jobs/random_mix-par" --seconds 0 --threads 3 --seed "$nth"
            SETTINGS="$two_ports VICTIM=0 FAULT=unplug:port=2,$fault" survives 2 "$rank" "$jobs/random_mix-seq" --seconds 0 --seed "$nth"
        done
    done
}

several_hosts()
{
    for nth in $moments; do
        for fault in "op=send,nth=$nth" "op=any,nth=$nth,lost=ack"; do
            SETTINGS="$two_devices VICTIM=1 FAULT=unplug:dev=softhca1,$fault" survives 2 "$rank" "$jobs/random_mix-par" --seconds 0 --threads 3 --seed "$nth"
            SETTINGS="$two_devices SOFTHCA_FAULT=unplug:dev=softhca1,$fault" survives 3 "$jobs/random_mix-seq" --seconds 0 --seed "$nth"
        done
    done
}

others()
{
    # One after the other until one is left, with minimal queues.
    for nth in $moments; do
        dying="unplug:dev=softhca0,port=1,op=any,nth=$nth;unplug:dev=softhca0,port=2,op=any,nth=$((nth + 9));unplug:dev=softhca1,port=1,op=any,nth=$((nth + 20))"
        SETTINGS="$four SOFTHCA_FAULT=$dying" job 3 "$jobs/random_mix-par" --seconds 0 --threads 2 --seed "$nth"
        fails_with 0 "three of four ports"
    done
    SETTINGS="$two_devices GASNET_AM_CREDITS_TOTAL=1 GASNET_NETWORKDEPTH_TOTAL=1 GASNET_PACKEDLONG_LIMIT=0 \
        SOFTHCA_FAULT=unplug:dev=softhca1,op=any,nth=60" survives 2 "$jobs/random_mix-par" --seconds 0 --seed 11
    SETTINGS="$two_devices GASNET_INLINESEND_LIMIT=0 SOFTHCA_FAULT=unplug:dev=softhca1,op=any,nth=60" survives 2 "$jobs/random_mix-seq" --seconds 0 --seed 11
    # A device dies when data that it has acknowledged is not in memory yet.
    SETTINGS="$two_devices SOFTHCA_FAULT=early:us=3000;unplug:dev=softhca0,op=write,nth=9" survives 2 "$jobs/put_visibility-seq"
    SETTINGS="$two_devices SOFTHCA_FAULT=early:us=3000;unplug:dev=softhca1,op=write,nth=9" survives 2 "$jobs/put_visibility-seq"
    SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=1,op=write,nth=20,lost=ack" survives 2 "$jobs/putget-seq"
    says 'softhca0:1 no longer reaches rank [01] ([^ ]*): .*; what went over it goes over other ports' 2
    most_had_deaths
    # By default a device retries for nine seconds; the port's event comes at once.
    SETTINGS="$two_ports GASNET_QP_TIMEOUT=18 VICTIM=1 FAULT=unplug:port=2,op=send,nth=5" survives 2 "$rank" "$jobs/random_mix-par" --seconds 0
    within 7
    says 'softhca0:2 no longer reaches rank 0 ([^ ]*): its port is down' 1
    # The port goes down and up; requests that the device itself gets through do not count.
    for tries in 1 2 3; do # on a machine where a rank waits long for a CPU the port may be down for long
        SETTINGS="$two_ports GASNET_QP_TIMEOUT=18 SOFTHCA_FAULT=unplug:port=1,op=write,every=50,ms=5" good 2 "$jobs/putget-seq"
        grep -q 'no longer reaches' "$scratch/err" || return
    done
    says 'no longer reaches' 0
}

# Shared receive queues with the minimum of buffers (a request of each peer, its exit notice and two notices about dead
# connections, a reply, and payloads that handlers read), and with some to lend. There is no RNR event.
shared()
{
    two=$((2 * 4 + 1))
    eight=$((8 * 4 + 1))
    for nth in $moments; do
        for how in "$two_ports SOFTHCA_FAULT=unplug:port=2" "$two_devices SOFTHCA_FAULT=unplug:dev=softhca1"; do
            SETTINGS="$how,op=send,nth=$nth GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$((two + 1))" survives 3 "$jobs/random_mix-seq" --seconds 0 --seed "$nth"
            SETTINGS="$how,op=any,nth=$nth,lost=ack GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$((two + 8))" survives 3 "$jobs/random_mix-par" --seconds 0 --threads 3 --seed "$nth"
            SETTINGS="$how,op=send,nth=$((nth % 10 + 1)) GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$((eight + 1))" survives 9 "$jobs/many_to_one-seq" 20
            SETTINGS="$how,op=send,every=40,ms=20 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=60" survives 9 "$jobs/many_to_one-par" 20
        done
    done
    SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=1,op=write,nth=20 GASNET_USE_SRQ=1 GASNET_IBV_FAILOVER=0" job 2 "$jobs/putget-seq"
    fails_with 1 "a dead port without failover, with shared queues"
    # No thread waits for a completion of the last message before a wait, and the queue flushes nothing.
    SETTINGS="SOFTHCA_FAULT=unplug:op=send,nth=3 GASNET_USE_SRQ=1 GASNET_CONNECT_STATIC=1" job 2 "$jobs/hello-seq"
    fails_with 1 "a dead port with shared queues"
    says 'failed on softhca0:1, queue pair [0-9]*: '
    # The same on a device that does not report the end of a queue pair by an event.
    SETTINGS="SOFTHCA_PROFILE=rxe SOFTHCA_FAULT=unplug:op=send,nth=3 GASNET_USE_SRQ=1 GASNET_CONNECT_STATIC=1 GASNET_QP_TIMEOUT=15" \
        job 2 "$jobs/hello-seq"
    fails_with 1 "a dead port with shared queues, no event"
    says 'failed on rxe0:1, queue pair [0-9]*: '
}

the_end()
{
    for port in 1 2; do
        SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=$port,op=write,nth=20 GASNET_IBV_FAILOVER=0" job 2 "$jobs/putget-seq"
        fails_with 1 "a dead port without failover"
        says "failed on softhca0:$port, queue pair [0-9]*: transport retry counter exceeded"
    done
    SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=2,op=send,nth=20;unplug:port=1,op=any,nth=200" job 2 "$jobs/random_mix-par" --seconds 20 --threads 2
    fails_with 1 "all ports dead"
    says 'failed on softhca0:[12], queue pair [0-9]*: \|is no longer reached over any port: softhca0:1, softhca0:2'
}

# A rank that is leaving still repeats what its dead port lost: here its message of the last barrier, which is one of these
# sends.
last_message()
{
    for nth in 1 2 3 4; do
        SETTINGS="$two_ports VICTIM=0 FAULT=unplug:port=2,op=send,nth=$nth" good 2 "$rank" "$jobs/last_barrier-seq"
    done
}

lane one_host one_host most_had_deaths
lane several_hosts several_hosts most_had_deaths
lane others others
lane shared shared most_had_deaths
lane the_end the_end
lane last_message last_message
finish
