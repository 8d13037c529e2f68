#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fabrics that change or are not as they should be: GID tables that change while a job runs, partition keys in other places of each
# host's table, ports that no subnet manager has activated, and MTUs that differ or are too large for the network. Each job works,
# or ends with one line that names the cause and the remedy.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
export SOFTHCA=$top_builddir/contrib/softhca/softhca
hello=$jobs/hello-seq
connected=$jobs/connected-seq
putget=$jobs/putget-seq

one_line()
{
    says '^trunkline' 1
}

# ---- GID tables that change ----

# Rank 0 runs these between two barriers. Rows of a RoCE port: 0 and 1 link-local, 2 and 3 IPv4, each for RoCE v1 and v2.
make_steps()
{
    mkdir "$scratch/steps"
    step lose 'remove 3'
    step move 'remove 3' 'remove 2' 'add 2 4' 'add 3 5'
    step lose_both 'remove 3' 'remove 2'
    step swap 'remove 2' 'add 3 2'
    cat >"$scratch/steps/flap" <<'END_OF_STEP'
#!/bin/sh
"$SOFTHCA" gid softhca0:1 remove 3 && { { sleep 0.3; "$SOFTHCA" gid softhca0:1 add 3 6; } >/dev/null 2>&1 & }
END_OF_STEP
    cat >"$scratch/steps/break" <<'END_OF_STEP'
#!/bin/sh
"$SOFTHCA" gid softhca0:1 remove 3 >/dev/null && "$SOFTHCA" fault set drop >/dev/null
END_OF_STEP
    chmod 755 "$scratch/steps"/*
}

# step NAME CHANGE...: a command that makes these changes in all processes
step()
{
    local name=$scratch/steps/$1 change
    shift
    echo '#!/bin/sh -e' >"$name"
    for change; do
        echo "\"\$SOFTHCA\" gid softhca0:1 $change >/dev/null" >>"$name"
    done
}

# With 8 ranks barriers connect those at distances 1, 2 and 4; those at 3 are connected after the change.
gids_move()
{
    make_steps
    export SOFTHCA_LINK=roce SOFTHCA_GIDS=link+ipv4+-+-+-+- GASNET_QP_TIMEOUT=12
    SETTINGS= good 8 "$connected" 1 "$scratch/steps/move" 1 3
    SETTINGS="GASNET_IBV_CONNECT=rdmacm" good 8 "$connected" 1 "$scratch/steps/move" 1 3
}

# Connections keep what they use, and new ones wait for it.
gids_go()
{
    make_steps
    export SOFTHCA_LINK=roce SOFTHCA_GIDS=link+ipv4+-+-+-+- GASNET_QP_TIMEOUT=12
    SETTINGS= good 3 "$connected" 1 "$scratch/steps/lose" 1 2
    SETTINGS= good 8 "$connected" "$scratch/steps/flap" 3
    SETTINGS="GASNET_IBV_CONNECT_TIMEOUT=0.5" job 8 "$connected" "$scratch/steps/lose" 3
    fails_with 1 "an address that does not come back"
    # Ranks that wait read their device's events.
    says 'softhca0:1 has lost its GID ::ffff:10.83.0.1 (RoCE v2): the address was removed; connections that use it may fail'
    says 'rank [0-7] ([^ ]*, pid [0-9]*) can.t be connected from softhca0:1 (GID ::ffff:10.83.0.1) to softhca0:1 .*: for 0.5 s (GASNET_IBV_CONNECT_TIMEOUT) the port.s table has had no such GID: give its interface the address again$'
}

gids_break()
{
    make_steps
    export SOFTHCA_LINK=roce GASNET_EXITTIMEOUT=2
    SETTINGS="GASNET_QP_TIMEOUT=8 GASNET_QP_RETRY_COUNT=1" job 2 "$connected" 1 "$scratch/steps/break" 1
    fails_with 1 "a connection without its address"
    says 'failed on softhca0:1, queue pair [0-9]*: transport retry counter exceeded .*; or our GID is gone: its address was removed from the interface; path: softhca0:1 (GID ::ffff:10.83.0.1)'
    export GASNET_IBV_CONNECT=rdmacm GASNET_IBV_CONNECT_TIMEOUT=0.5
    SETTINGS= good 8 "$connected" "$scratch/steps/lose" "$scratch/steps/swap" 3
    SETTINGS= job 8 "$connected" "$scratch/steps/lose_both" 3
    fails_with 1 "an address that does not come back, with librdmacm"
    says 'rank [0-7] ([^ ]*, pid [0-9]*) can.t be connected by librdmacm: for 0.5 s (GASNET_IBV_CONNECT_TIMEOUT) softhca0:1 has not had its GID ::ffff:10.83.0.1: give its interface the address again$'
}

# ---- partitions ----

partitions()
{
    local setting
    by_rank places SOFTHCA_PKEYS=ffff,8001,8010 SOFTHCA_PKEYS=0,8010,ffff SOFTHCA_PKEYS=7fff,10,0,ffff
    SETTINGS="GASNET_IBV_PKEY=0x10" good 3 "$scratch/places" "$putget" 65536
    by_rank places SOFTHCA_PKEYS=7fff,8001,ffff SOFTHCA_PKEYS=0,ffff,8001 SOFTHCA_PKEYS=7fff
    good 3 "$scratch/places" "$hello"
    by_rank lacks SOFTHCA_PKEYS=ffff,8001,8010 SOFTHCA_PKEYS=ffff,0,7fff
    SETTINGS="GASNET_IBV_PKEY=0x10" job 2 "$scratch/lacks" "$hello"
    fails_with 1 "a host without the key"
    says 'softhca0:1 is not in the partition of GASNET_IBV_PKEY (0x0010): it has 0xffff, 0x7fff' 1
    for setting in SOFTHCA_PKEYS=7fff SOFTHCA_PKEYS=7fff,8001; do
        SETTINGS=$setting job 2 "$hello"
        fails_with 1 "limited members"
        says 'are both limited members of partition 0x7fff, which do not reach each other: make one a full member, or give both another partition by GASNET_IBV_PKEY' 1
        one_line
    done
    SETTINGS="GASNET_IBV_PKEY=1 SOFTHCA_PKEYS=7fff,8001" good 2 "$hello"
}

# ---- ports that are not active ----

states()
{
    local state
    for state in init:Init armed:Armed; do
        SETTINGS="SOFTHCA_STATE=${state%:*}" job 2 "$hello"
        fails_with 1 "a port that is ${state#*:}"
        says "no usable RDMA port: softhca0:1 is in state ${state#*:}, not Active: the subnet manager has not finished with it; start one (opensm), or wait for it" 1
        one_line
    done
    SETTINGS="SOFTHCA_STATE=no-lid" job 2 "$hello"
    fails_with 1 "LID 0"
    says 'softhca0:1 is Active with LID 0: no subnet manager gave it one; start one (opensm), or use its GID: GASNET_IBV_GID_INDEX=softhca0:1=0' 1
    one_line
    SETTINGS="SOFTHCA_STATE=no-lid GASNET_IBV_GID_INDEX=softhca0:1=0" good 2 "$hello"
    SETTINGS="SOFTHCA_STATE=init SOFTHCA_LINK=roce" job 2 "$hello"
    fails_with 1 "an Ethernet port that is Init"
    says 'softhca0:1 is in state Init, not Active: bring its network interface up' 1
    # Others are used, with the reason for those who ask.
    SETTINGS="SOFTHCA_HCAS=3 SOFTHCA_STATE=softhca0:1=init,softhca1:1=no-lid GASNET_IBV_PORTS_VERBOSE=1" good 2 "$hello"
    says 'softhca0:1.* is in state Init, not Active' 1
    says 'softhca1:1.* is Active with LID 0' 1
    says 'softhca2:1.*only usable device' 1
}

# A port that becomes active after the start is not used by a job that runs.
late()
{
    echo '#!/bin/sh
exec "$SOFTHCA" plug softhca1:1 in >/dev/null' >"$scratch/activate"
    chmod 755 "$scratch/activate"
    SETTINGS="SOFTHCA_HCAS=2 SOFTHCA_STATE=softhca1:1=armed GASNET_VERBOSEENV=1" good 2 "$connected" 1 "$scratch/activate" 1
    says 'network: softhca0:1 ' 1
    says 'network: softhca1:1 ' 0
}

# ---- MTU ----

# softhca refuses messages if the ends of a connection differ.
mtus()
{
    local link
    by_rank mtus SOFTHCA_MTU=4096 SOFTHCA_MTU=1024 SOFTHCA_MTU=2048
    for link in ib roce; do
        SETTINGS="SOFTHCA_LINK=$link" good 3 "$scratch/mtus" "$putget" 65536
    done
    # Connecting takes small packets, which pass.
    export SOFTHCA_FAULT=drop:over=1024 GASNET_QP_TIMEOUT=8 GASNET_QP_RETRY_COUNT=1 GASNET_EXITTIMEOUT=2
    SETTINGS= job 2 "$putget" 65536
    fails_with 1 "a network that drops large packets"
    says 'transport retry counter exceeded .*; if only large transfers fail, the network takes smaller packets than the path MTU of 4096 bytes: lower GASNET_MAX_MTU; path: '
    SETTINGS="GASNET_MAX_MTU=1024" good 2 "$putget" 65536
}

lane move gids_move
lane go gids_go
lane break gids_break
lane partitions partitions
lane states states late
lane mtus mtus
finish
