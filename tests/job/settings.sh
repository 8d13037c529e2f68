#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Illegal settings: each ends the job soon, with one line that names the variable, the value and the legal values. The
# launcher prints it, with status 2, before a rank starts, or a rank that another launcher started. Unknown names are
# warned about once.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
hello=$jobs/hello-seq

# Exactly that many lines on standard error, not counting the launcher's line about softhca.
lines()
{
    counted=$(grep -vc 'using softhca' "$scratch/err")
    [ "$counted" -eq "$1" ] || failed "$counted lines instead of $1"
}

# refused SETTINGS PATTERN: by the launcher, by a rank without our launcher, by trunkline_info.
info=$top_builddir/contrib/info/trunkline_info
refused()
{
    SETTINGS=$1 job 3 "$hello"
    fails_with 2 "$1"
    says "^gasnetrun_ibv: $2" 1
    lines 1
    env "$1" "$hello" >"$scratch/out" 2>"$scratch/err"
    status=$?
    fails_with 1 "$1 of a rank"
    says "$2" 1
    lines 1
    for section in --settings --check; do
        env "$1" "$info" $section >"$scratch/out" 2>"$scratch/err"
        status=$?
        fails_with 2 "$1, trunkline_info $section"
        says "$2" 1
    done
    grep -q '^WRONG .*a setting has a value that is not legal' "$scratch/out" || failed "$1: --check has no finding"
}

# What each type takes is in tests/unit/settings; every setting out of its range is in environment.sh.
refused GASNET_AM_CREDITS_PP=x "GASNET_AM_CREDITS_PP='x' is not a whole number from 1 to 1024"
refused GASNET_AM_CREDITS_PP=99999999999999999999 "GASNET_AM_CREDITS_PP='9*' is not .* from 1 to 1024"
refused GASNET_AM_CREDITS_PP=12x "GASNET_AM_CREDITS_PP='12x' is not"
refused GASNET_PACKEDLONG_LIMIT=1Q "GASNET_PACKEDLONG_LIMIT='1Q' is not"
refused GASNET_MAX_SEGSIZE=junk "GASNET_MAX_SEGSIZE='junk' is not a size"
# Also settings that a job within shared memory does not use; tests/unit/settings/test_forms.c has the forms.
refused GASNET_PHYSMEM_MAX=abc "GASNET_PHYSMEM_MAX='abc' is neither a fraction below 1"
refused GASNET_IBV_PORTS=::: "GASNET_IBV_PORTS=':::': ':::' is not device or device:port,port"
refused GASNET_IBV_PORTS_3=a: "GASNET_IBV_PORTS_3='a:': 'a:' is not device or device:port,port"
refused GASNET_IBV_PORTS_TYPE=Auto:few "GASNET_IBV_PORTS_TYPE='Auto:few': behind auto: is neither all nor a number of ports from 1 to 64"
refused GASNET_IBV_PORTS_TYPE=Nonsense "GASNET_IBV_PORTS_TYPE='Nonsense' is no type of hwloc's for parts of a machine: Package (or Socket)"

# One warning, from rank 0, with the nearest name; the job runs. No warning if it is switched off.
SETTINGS=GASNET_AM_CREDIT_PP=4 good 3 "$hello"
says 'GASNET_AM_CREDIT_PP .* did you mean GASNET_AM_CREDITS_PP' 1
lines 1
SETTINGS="GASNET_QUIET=1 GASNET_AM_CREDIT_PP=4"
job 3 "$hello"
fails_with 0 "GASNET_QUIET=1"
[ ! -s "$scratch/err" ] || failed "GASNET_QUIET=1 is not quiet"
# A variable of the conduit that this one replaces is no mistake.
SETTINGS=GASNET_PHYSMEM_NOPROBE=1 good 2 "$hello"
lines 0
SETTINGS=GASNET_VERBOSEENV=1 good 2 "$hello"
says 'ENV parameter: GASNET_AM_CREDITS_PP = 12 (default)$' 1

# Ports: none of that name, none at all; a job of one needs none.
for port in nosuch softhca0:7 softhca0:7+nosuch:1; do
    SETTINGS="GASNET_SOFTHCA=always SOFTHCA_ONLY=1 GASNET_IBV_PORTS=$port" job 3 "$hello"
    fails_with 1 "GASNET_IBV_PORTS=$port"
    says 'no usable RDMA port: softhca0:1 is not in GASNET_IBV_PORTS' 1
    lines 1
    within 10
done

# A port that is down is named; another one that is up is used instead.
SETTINGS="GASNET_SOFTHCA=always SOFTHCA_ONLY=1 SOFTHCA_DOWN=softhca0:1" job 3 "$hello"
fails_with 1 "the only port is down"
says 'no usable RDMA port: softhca0:1 is down' 1
lines 1
within 10
SETTINGS="GASNET_SOFTHCA=always SOFTHCA_ONLY=1 SOFTHCA_PORTS=2 SOFTHCA_DOWN=softhca0:1" good 2 "$hello"

SETTINGS=GASNET_IBV_PORTS=nosuch job 1 "$hello"
fails_with 0 "a job of one"
SETTINGS="GASNET_SOFTHCA=always SOFTHCA_ONLY=1 GASNET_IBV_PORTS=nosuch+softhca0:1" good 2 "$hello"
if ! ls /sys/class/infiniband/* >/dev/null 2>&1; then
    SETTINGS=GASNET_SOFTHCA=never job 3 "$hello"
    fails_with 1 "no device"
    says 'no active RDMA port, and GASNET_SOFTHCA=never' 1
    lines 1
    SETTINGS=GASNET_SOFTHCA=never job 1 "$hello"
    fails_with 0 "a job of one without a device"
fi

# Segments: more than allowed, and more than this machine has.
SETTINGS=GASNET_MAX_SEGSIZE=1M good 2 "$hello" 1048576
for bytes in 1052672 0x100000000000; do
    SETTINGS=GASNET_MAX_SEGSIZE=1M job 2 "$hello" $bytes
    fails_with 1 "a segment of $bytes bytes"
    says 'gex_Segment_Attach: [0-9]* bytes are not between 1 and 1048576'
done

# per_rank RANK COMMAND: a program that runs hello, after COMMAND on one rank.
per_rank()
{
    printf '#!/bin/sh\n[ "$PMIX_RANK" != %s ] || %s\nexec "$@"\n' "$1" "$2" >"$scratch/rank$1"
    chmod 755 "$scratch/rank$1"
}

per_rank 1 'export GASNET_AM_CREDITS_PP=4'
job 3 "$scratch/rank1" "$hello"
fails_with 1 "settings that differ"
says 'settings differ between ranks: GASNET_AM_CREDITS_PP=4 here, but GASNET_AM_CREDITS_PP=12 on rank 0' 1
lines 1
# Also settings that decide which ranks share memory: before any is mapped, whichever rank differs.
for rank in 0 1; do
    per_rank $rank 'export GASNET_SUPERNODE_MAXSIZE=1'
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=always" job 3 "$scratch/rank$rank" "$hello"
    fails_with 1 "a different GASNET_SUPERNODE_MAXSIZE on rank $rank"
    says 'settings differ between ranks: GASNET_SUPERNODE_MAXSIZE=[01] here, but GASNET_SUPERNODE_MAXSIZE=[01] on rank 0' 1
    lines 1
done
per_rank 1 'export GASNET_HOST_DETECT=gethostid'
SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" job 2 "$scratch/rank1" "$hello"
says 'settings differ between ranks: GASNET_HOST_DETECT=gethostid here' 1
lines 1
per_rank 2 'export GASNET_AM_CREDITS_PP=many'
job 3 "$scratch/rank2" "$hello"
fails_with 1 "a bad setting on one rank"
says "GASNET_AM_CREDITS_PP='many' is not" 1
lines 1
per_rank 1 'export GASNET_RBUF_SPARES=4'
good 3 "$scratch/rank1" "$hello"
per_rank 1 'exit 7'
job 3 "$scratch/rank1" "$hello"
fails_with 7 "a rank that dies before it starts"
within 10
finish
