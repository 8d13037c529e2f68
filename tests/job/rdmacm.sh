#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose queue pairs librdmacm connects (GASNET_IBV_CONNECT=rdmacm): messages, puts and gets over RoCE and InfiniBand, one rail
# and several; a port that goes down and comes back, connected by it again; strangers that connect to a rank's listener; and
# errors that stop such a job at its start.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_IBV_CONNECT=rdmacm
export GASNET_QP_TIMEOUT=10 # 4 ms; seven tries
export LINK_TOOL=$top_builddir/contrib/softhca/softhca

connects()
{
    SETTINGS="SOFTHCA_LINK=roce GASNET_VERBOSEENV=1" good 4 "$jobs/am-seq"
    says 'connected by librdmacm from 10.83.0.1:' 1
    says 'connections: each is made when one of its ranks first uses the other' 1
    SETTINGS="SOFTHCA_LINK=ib SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" good 3 "$jobs/putget-seq" 1048576
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_HCAS=2 GASNET_NUM_QPS=3 GASNET_IBV_FAILOVER=0 GASNET_INLINESEND_LIMIT=0 GASNET_AM_CREDITS_PP=1" good 3 "$jobs/am-par"
    # Neighbours need no connection, and atomics of the device among them get one without librdmacm.
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_AD_METHOD=device" good 4 "$jobs/atomics-seq" 1
}

# Rank 0 runs this now and then: the port goes down, is given up, comes up, and is connected again.
cat >"$scratch/step" <<'END'
#!/bin/bash
lines() { [ "$(grep -c -- "$2" "$SAID")" -ge "$1" ] || exit 1; }
case $1 in
0) "$LINK_TOOL" link softhca0:2 down >>"$NOTES" 2>&1 ;;
1) lines 2 'softhca0:2 no longer reaches rank' ;;
2) "$LINK_TOOL" link softhca0:2 up >>"$NOTES" 2>&1 ;;
3) lines 2 'softhca0:2 reaches rank .* again, and is used again' ;;
4) "$LINK_TOOL" link softhca0:1 down >>"$NOTES" 2>&1 ;;
5) lines 2 'softhca0:1 no longer reaches rank' ;;
*) exit 2 ;;
esac
exit 0
END
chmod 755 "$scratch/step"
step=$scratch/step

# The second death shows that the port that was connected again carries messages.
comes_back()
{
    export NOTES=$scratch/notes SAID=$scratch/err
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2" good 2 "$jobs/port_flap-$1" "$step"
    says 'softhca0:2 reaches rank [01] ([^ ]*) again, and is used again' 2
    says 'softhca0:1 no longer reaches rank' 2
}

comes_back_seq()
{
    comes_back seq
}

comes_back_par()
{
    comes_back par
}

# A stranger connects to the listeners while the job runs; the ranks refuse when they poll.
cat >"$scratch/knock" <<'END'
#!/bin/bash
case $1 in
0)
    port=$(sed -n 's/.*connected by librdmacm from 10.83.0.1:\([0-9]*\).*/\1/p' "$SAID")
    (LD_PRELOAD=$SOFTHCA timeout 30 rping -c -a 10.83.0.1 -p "$port" -C 1 >>"$NOTES" 2>&1; echo "rping: $?" >>"$NOTES") &
    ;;
1) grep -q '^rping: ' "$NOTES" || exit 1 ;;
*) exit 2 ;;
esac
exit 0
END
chmod 755 "$scratch/knock"
knock=$scratch/knock

strangers()
{
    command -v rping >/dev/null || return
    export NOTES=$scratch/notes SAID=$scratch/err SOFTHCA=$top_builddir/contrib/softhca/libsofthca.so
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_VERBOSEENV=1" good 2 "$jobs/port_flap-seq" "$knock"
    grep -q '^rping: [1-9]' "$NOTES" || failed "a stranger was let in: $(cat "$NOTES")"
    says 'softhca0:1 refused a connect from 10.83.0.1: it is not of this job' 1
}

refuses()
{
    SETTINGS="GASNET_IBV_CONNECT=ethernet" job 2 "$jobs/barrier-seq"
    fails_with 2 "a way to connect that is none"
    says 'GASNET_IBV_CONNECT' 1
}

lane connects connects
lane seq comes_back_seq
lane par comes_back_par
lane strangers strangers
lane refuses refuses
finish
