#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Another user of the host, who sends packets from the addresses of a job's ranks and guesses numbers, can neither end the job nor
# change its results: on loopback, and where ranks share an address of a network. The job has few messages, so that the numbers
# of its packets stay low.
if [ "${1-}" != inside ]; then
    as="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
    if [ "$(id -u)" != 0 ] || ! $as true 2>/dev/null; then
        echo "skipped: not root, or setpriv cannot change the user here: there is no second user"
        exit 77
    fi
    if ! why=$(unshare -n ip link set lo up 2>&1); then
        echo "skipped: no network namespaces here: $why"
        exit 77
    fi
    exec unshare -n "$0" inside
fi
. "${top_srcdir:?run through make check}/tests/job/common.sh"
as="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
patience=60 # seconds that bound a failure only
# The user may not be able to read the build tree.
install -m 755 "$top_builddir/tests/softhca/udp_spray" "$scratch/udp_spray" || exit 1
ip link set lo up && ip addr add 10.9.0.1/24 dev lo || exit 1

# counter NAME: its sum over the ranks of the last job
counter()
{
    awk -v name=" $1 " '{ at = index($0, name); if (at) { split(substr($0, at + length(name)), n, " "); sum += n[1] } }
        END { print sum + 0 }' "$scratch/stats"
}

# quiet_job: runs it until the file marks.go is there, and then to its end.
quiet_job()
{
    (failures=0; job 2 "$jobs/top-seq" "$scratch/marks"; passes strangers; exit $failures) &
    runs=$!
    until_end=$((SECONDS + patience))
    until [ -s "$scratch/marks.0" ] && [ -s "$scratch/marks.1" ]; do
        [ $SECONDS -lt $until_end ] && kill -0 $runs 2>/dev/null || return 1
        sleep 0.05
    done
}

# visited WHERE: a stranger sends packets while the job is quiet.
visited()
{
    rm -f "$scratch"/marks.*
    quiet_job || failed "$1: the job did not begin"
    $as "$scratch/udp_spray" >"$scratch/spray" 2>&1
    status=$?
    [ $status -eq 0 ] || failed "$1: the stranger: $(cat "$scratch/spray")"
    : >"$scratch/marks.go"
    wait $runs || failed "$1: the job did not end well"
    [ "$(counter strangers)" -ge 1000 ] || failed "$1: only $(counter strangers) packets were counted as of strangers"
    # Other packets may be early or unexpected: packets that the flood displaced are repeated.
    [ "$(counter damaged)" -eq 0 ] || failed "$1: $(counter damaged) packets counted as damaged"
}

export GASNET_SUPERNODE_MAXSIZE=1
SETTINGS="SOFTHCA_WIRE=udp" visited loopback
SETTINGS="SOFTHCA_WIRE=udp SOFTHCA_UDP=10.9.0.0/24" visited network
finish
