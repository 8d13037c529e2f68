#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ports that go down for good, or down and up, in the middle of traffic that checks itself (port_flap.c), on several configurations:
# their traffic moves to other ports, each message arrives once and in order, and the job succeeds.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_QP_TIMEOUT=10 # 4 ms; seven tries
export LINK_TOOL=$top_builddir/contrib/softhca/softhca
two_ports="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2"
two_devices="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2"
four_of_eight="SOFTHCA_HCAS=4 SOFTHCA_PORTS=2 GASNET_NUM_QPS=4 GASNET_IBV_PORTS=softhca0:2+softhca1:1+softhca2:2+softhca3:1"
network=GASNET_SUPERNODE_MAXSIZE=1
mixed=GASNET_SUPERNODE_MAXSIZE=2

# Rank 0 runs this now and then with the N-th word of $PLAN. down=PORT, up=PORT; lines=COUNT,PATTERN waits for so many lines;
# calls=N lets the traffic continue for N calls.
cat >"$scratch/step" <<'END_OF_STEP'
#!/bin/bash
read -r -a plan <<<"$PLAN"
[ "$1" -lt "${#plan[@]}" ] || exit 2
value=${plan[$1]#*=}
case ${plan[$1]} in
down=* | up=*)
    "$LINK_TOOL" link "$value" "${plan[$1]%%=*}" >>"$NOTES" 2>&1 || exit 3
    ;;
lines=*)
    [ "$(grep -c -- "${value#*,}" "$SAID")" -ge "${value%%,*}" ] || exit 1
    ;;
calls=*)
    echo call >>"$NOTES.$1"
    [ "$(wc -l <"$NOTES.$1")" -ge "$value" ] || exit 1
    ;;
*)
    exit 4
    ;;
esac
exit 0
END_OF_STEP
chmod 755 "$scratch/step"
step=$scratch/step

# plan WORDS...: sets the plan of the next job.
plan()
{
    export PLAN="$*" NOTES=$scratch/notes SAID=$scratch/err
    rm -f "$NOTES" "$NOTES".*
}

# flaps N MODE SETTINGS PLAN...: a job that must succeed; $rounds between two steps, if it is set.
rounds=
flaps()
{
    local n=$1 mode=$2 settings=$3
    shift 3
    plan "$@"
    SETTINGS=$settings good "$n" "$jobs/port_flap-$mode" "$step" $rounds
}

gone=.no.longer.reaches.rank # for a plan, whose words must not have blanks
back=.reaches.rank.*.again,.and.is.used.again

# Each of two ranks prints this for each of its ports.
said_of()
{
    says "$1 no longer reaches rank" "$2"
}

for_good()
{
    flaps 2 seq "$network $two_ports" calls=1 down=softhca0:2 "lines=2,softhca0:2$gone" calls=2
    said_of softhca0:2 2
    flaps 2 par "$network $two_devices" calls=1 down=softhca0:1 "lines=2,softhca0:1$gone" calls=2
    said_of softhca0:1 2
    flaps 3 seq "$network $four_of_eight" calls=1 down=softhca2:2 "lines=6,softhca2:2$gone" down=softhca0:2 "lines=6,softhca0:2$gone" calls=2
    said_of "softhca.*" 12
}

for_good_mixed()
{
    flaps 3 par "$mixed $two_ports" calls=1 down=softhca0:1 "lines=4,softhca0:1$gone" calls=2
    said_of softhca0:1 4
    flaps 4 seq "$mixed $two_devices" calls=1 down=softhca1:1 "lines=8,softhca1:1$gone" calls=2
    said_of softhca1:1 8
    flaps 3 par "$mixed $four_of_eight" calls=1 down=softhca1:1 "lines=4,softhca1:1$gone" down=softhca3:1 "lines=4,softhca3:1$gone" calls=2
    said_of "softhca.*" 8
}

# A port goes down, is given up, and comes up again; then the other one goes down, so the first must work again.
comes_back()
{
    flaps 2 seq "$network $two_ports GASNET_IBV_PORTS_VERBOSE=2" calls=1 down=softhca0:2 "lines=2,softhca0:2$gone" calls=1 up=softhca0:2 \
        "lines=2,softhca0:2$back" calls=1 down=softhca0:1 "lines=2,softhca0:1$gone" calls=2
    says 'port softhca0:1: connections given up 1, used again 0' 2
    says 'port softhca0:2: connections given up 1, used again 1' 2
    flaps 2 par "$network $two_devices" calls=1 down=softhca0:1 "lines=2,softhca0:1$gone" up=softhca0:1 \
        "lines=2,softhca0:1$back" calls=1 down=softhca1:1 "lines=2,softhca1:1$gone" up=softhca1:1 "lines=2,softhca1:1$back" calls=1
}

# The same with more ports, and with ranks that share memory.
more_come_back()
{
    flaps 3 seq "$network $four_of_eight" calls=1 down=softhca2:2 "lines=6,softhca2:2$gone" up=softhca2:2 \
        "lines=6,softhca2:2$back" down=softhca0:2 down=softhca1:1 down=softhca3:1 "lines=24,$gone" calls=1
    flaps 3 par "$mixed $two_ports" calls=1 down=softhca0:1 "lines=4,softhca0:1$gone" up=softhca0:1 \
        "lines=4,softhca0:1$back" calls=1 down=softhca0:2 "lines=4,softhca0:2$gone" calls=2
}

# With shared receive queues of the minimum of buffers, and of some more.
shared_come_back()
{
    flaps 3 seq "$network $two_ports GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=10" calls=1 down=softhca0:2 "lines=6,softhca0:2$gone" up=softhca0:2 \
        "lines=6,softhca0:2$back" down=softhca0:1 "lines=6,softhca0:1$gone" up=softhca0:1 "lines=6,softhca0:1$back" calls=1
    flaps 3 par "$network $two_devices GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" calls=1 down=softhca0:1 "lines=6,softhca0:1$gone" up=softhca0:1 \
        "lines=6,softhca0:1$back" down=softhca1:1 "lines=6,softhca1:1$gone" calls=1
    flaps 3 seq "$network $four_of_eight GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=40" calls=1 down=softhca2:2 down=softhca0:2 "lines=12,$gone" up=softhca2:2 \
        "lines=6,softhca2:2$back" down=softhca1:1 down=softhca3:1 "lines=24,$gone" calls=1
}

# If a process has queue pairs to only one peer at a time, a port may go down while no connection uses it. Connections that are
# made then leave it out, silently, and use it when it is back. Each round closes and opens all of them.
bounded()
{
    rounds=3
    flaps 3 seq "$network $two_ports GASNET_CONNECT_MAX=2" calls=1 down=softhca0:2 calls=2 up=softhca0:2 calls=2 down=softhca0:1 calls=2
    flaps 3 par "$network $two_devices GASNET_CONNECT_MAX=2 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" calls=1 down=softhca0:1 calls=2 \
        up=softhca0:1 calls=2 down=softhca1:1 calls=2 up=softhca1:1 calls=2
}

without_failover()
{
    for shape in "$two_ports" "$two_devices"; do
        plan calls=1 down=softhca0:1 calls=1000
        SETTINGS="$network $shape GASNET_IBV_FAILOVER=0" job 2 "$jobs/port_flap-seq" "$step"
        fails_with 1 "a dead port without failover"
        says "failed on softhca0:1, queue pair [0-9]*: transport retry counter exceeded"
        said_of softhca0:1 0
    done
}

lane for_good for_good
lane comes_back comes_back
if [ "$sanitizer" = no ]; then
    lane for_good_mixed for_good_mixed
    lane more_come_back more_come_back
fi
lane shared_come_back shared_come_back
lane bounded bounded
lane without_failover without_failover
finish
