#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks of one host share memory: which ranks with which, the message when they cannot, and that no device is needed for it.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
unset GASNET_SUPERNODE_MAXSIZE
neighbours=$jobs/neighbours-seq

# There is no device, none is needed, and no message mentions one.
export GASNET_SOFTHCA=never
good 2 "$jobs/hello-seq"
says . 0
grep -q '^2 ranks over shm ' "$scratch/out" || failed "not over shared memory: $(cat "$scratch/out")"
good 3 "$neighbours" flood
good 4 "$jobs/neighbours-par" flood
SETTINGS="GASNET_VERBOSEENV=1" good 3 "$jobs/hello-seq"
says 'neighbourhoods: 1, ranks of this one: 3' 1
says 'network: none needed' 1
SETTINGS=
job 2 env GASNET_SUPERNODE_MAXSIZE=1 "$jobs/hello-seq"
[ "$status" -ne 0 ] || failed "a network without a device"
unset GASNET_SOFTHCA

# Neighbourhoods limited to N ranks; limits 4 and 5 of 5 ranks differ, and 5 means all.
SETTINGS= good 5 "$neighbours" shape 0
for most in 1 2 3 5; do
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$most" good 5 "$neighbours" shape $most
done
SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 5 "$jobs/neighbours-par" shape 2
SETTINGS=
[ "$sanitizer" != no ] || good 64 "$jobs/hello-seq"

# With few resources the job works, or a line names the missing one.
good 3 sh -c 'ulimit -n 24; exec "$@"' sh "$jobs/hello-seq"
job 3 sh -c 'ulimit -f 100; exec "$@"' sh "$jobs/hello-seq"
fails_with 1 "files of 100 KiB at most"
says '^trunkline.*no memory for message rings .*(ulimit -f)'
if [ "$sanitizer" = no ]; then
    for kib in 33000 34000 35000 36000 38000; do
        job 3 sh -c "ulimit -v $kib"'; exec "$@"' sh "$jobs/hello-seq"
        [ "$status" -eq 0 ] || says '^trunkline.*ulimit -v'
        within 20
    done
fi

# A rank that does not let its neighbours access its memory is named. Root may access every process.
if [ "$(id -u)" -ne 0 ]; then
    job 2 "$neighbours" hidden
elif command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$neighbours" -a -x "$GASNETRUN"; then
    command="hidden, as nobody"
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ TMPDIR=/tmp "$GASNETRUN" -n 2 "$neighbours" hidden \
        </dev/null >"$scratch/out" 2>"$scratch/err"
    status=$?
else
    status=1
    echo "trunkline: can't map the message rings, GASNET_SUPERNODE_MAXSIZE=1" >"$scratch/err" # as it would say
    echo "not tried: nobody cannot read $top_builddir"
fi
fails_with 1 "hidden"
says "^trunkline.*can't map the message rings.*GASNET_SUPERNODE_MAXSIZE=1"

# In a given directory, without /dev/shm, or with virtual hosts.
if unshare --mount --uts true 2>/dev/null; then
    command="no /dev/shm"
    unshare --mount sh -c 'mount -t tmpfs -o ro,size=64k none /dev/shm && exec "$@"' sh "$watchdog" 60 "$GASNETRUN" -n 3 \
        "$neighbours" flood </dev/null >"$scratch/out" 2>"$scratch/err"
    status=$?
    fails_with 0 "no /dev/shm"
    job 2 unshare --uts sh -c 'hostname other-$PMIX_RANK; exec "$@"' sh "$jobs/hello-seq"
    fails_with 1 "two hosts, but the launcher says one"
    says '^trunkline.*GASNET_HOST_DETECT=conduit rank 1 (other-1) is on another host than rank 0 (other-0)'
    SETTINGS="GASNET_HOST_DETECT=gethostid" job 2 unshare --uts sh -c 'hostname other-$PMIX_RANK; exec "$@"' sh "$jobs/hello-seq"
    passes "one host by its id"
    SETTINGS=
else
    echo "not tried: this user cannot make a place of its own (unshare)"
fi
finish
