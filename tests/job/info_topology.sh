#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# trunkline_info --topology prints which rank of a host gets which device, on synthetic machines (tests/unit/topology).
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "the program is the plain one"
info=$top_builddir/contrib/info/trunkline_info
machines=$top_srcdir/tests/unit/topology
unset "${!GASNET_@}" # make check has settings of its own

# spread MACHINE "DEVICES OF EACH RANK" OPTION...: devices by their numbers
spread()
{
    local machine=$1 expected=$2 found
    shift 2
    command="trunkline_info --topology $machine $*"
    "$info" --topology "$machines/$machine.xml" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    [ "$status" -eq 0 ] || failed "status $status, not 0: $(cat "$scratch/err")"
    found=$(sed -n 's/^  rank [0-9]* *\(.*\); on CPUs .*/\1/p' "$scratch/out" | sed 's/ (not near)//g; s/mlx5_//g; s/, /,/g' | xargs)
    [ "$found" = "$expected" ] || failed "ranks get $found, not $expected"
}

has() { grep -qE -- "$1" "$scratch/out" || failed "nothing printed like '$1': $(cat "$scratch/out")"; }

spread one-socket "0 0 0" --ranks 3 --bind core
spread two-sockets "0 0 1 1" --ranks 4 --bind socket
has '^ *rank 3 +mlx5_1; on CPUs 4-7$'
has '^ *mlx5_0 +2 ranks; near to CPUs 0-3$'
spread two-sockets "0 1 0 1" --ranks 4 --bind 0-3:4-7
spread two-sockets "0 0 1 1" --ranks 4 --bind 0-3
has '^ *rank 3 +mlx5_1 \(not near\); on CPUs 0-3$'
spread two-sockets "0 1 0 1 0" --ranks 5
spread four-switches "0 1 2 3" --ranks 4 --bind socket
has '^ *mlx5_2 +1 rank; near to CPUs 4-7; behind one switch with cuda2$'
spread four-switches "0,1 0,1 2,3 2,3" --ranks 4 --bind socket --rails 2
spread four-switches "0,1,2,3" --ranks 1 --bind socket --rails all
GASNET_IBV_PORTS_TYPE=auto:2 spread four-switches "0,1 2,3" --ranks 2 --bind socket
GASNET_IBV_PORTS=mlx5_1+mlx5_2 spread four-switches "1 2" --ranks 2 --bind socket
spread eight-and-eight "2 3 0 1 6 7 4 5" --ranks 8 --bind numa
spread sub-numa "0 0 1 1" --ranks 4 --bind numa

# An error is one line, with status 2.
for wrong in "--topology $machines/none.xml --ranks 2" "--topology $0 --ranks 2" "--topology $machines/one-socket.xml" \
    "--topology $machines/one-socket.xml --ranks 0" "--topology $machines/one-socket.xml --ranks 2 --bind 7" \
    "--topology $machines/one-socket.xml --ranks 2 --bind shelf" "--topology $machines/one-socket.xml --ranks 9 --bind core" \
    "--topology $machines/one-socket.xml --ranks 2 --rails few" "--ranks 2" "--check --bind core" \
    "--topology $machines/one-socket.xml --ranks" "--topology $machines/one-socket.xml --ranks 2 word"; do
    # shellcheck disable=SC2086 # words
    "$info" $wrong >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$? command="trunkline_info $wrong"
    [ "$status" -eq 2 ] || failed "status $status, not 2"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "not one line: $(cat "$scratch/err")"
done
GASNET_IBV_PORTS=mlx4_0 "$info" --topology "$machines/one-socket.xml" --ranks 2 2>"$scratch/err" && failed "a device that is not there"
grep -q 'the machine has none of the RDMA devices of GASNET_IBV_PORTS' "$scratch/err" || failed "the reason: $(cat "$scratch/err")"
finish
