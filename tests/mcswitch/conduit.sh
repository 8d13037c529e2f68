#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose broadcasts go over mcswitchd, on softhca's packets: the switch's counts for each broadcast, by testbcast; random
# collectives, also with ranks that share a member; a switch that stands still, is killed and comes back, or is missing; a rank that
# dies; more neighbourhoods than one level of the switch supports.
. "${top_srcdir:?}/tests/mcswitch/common.sh"
: "${GASNETRUN:?}"
jobs=$top_builddir/tests/job
export SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1 GASNET_MCAST=require GASNET_QUIET=1 JOB_DEADLINE=180 TMPDIR=$work

# run STATUS N PROGRAM [ARGS...]: a job
run()
{
    local want=$1 n=$2 got
    shift 2
    "$jobs/watchdog" 200 "$GASNETRUN" -n "$n" "$jobs/$1" "${@:2}" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = "$want" ] || fail "$n ranks, $*: status $got, not $want: $(tail -5 "$work/err")"
}

# counted N [LEAVES [SIZES]]: of 20 broadcasts of each of two sizes and each kind to N - 1 receivers, exactly the packets that there must be, in each
# line of the table: without loss nothing waits, nothing is sent twice. A broadcast is control, data, stamp and release, or with the lock
# kept data and stamp. On two levels each leaf gets a control and copies, too; random subsets may leave one out. A busy machine
# may delay a packet for longer than the measured round trip, so packets are not repeated before 20 s, and the lease is long.
counted()
{
    local n=$1 leaves=${2:-0} sizes=${3:-8:64} kinds=fresh,kept,rotate,subset lines=8
    [ "$leaves" = 0 ] || kinds=fresh,kept sizes=1024:8192 lines=4
    SOFTHCA_REPEAT=20000 run 0 "$n" testbcast-seq -i 20 -m switch -k $kinds -s $sizes -S "$work/socket"
    awk -v n=$((n - 1)) -v l=$((leaves)) -v want=$lines '
        $1 == "switch" {
            lines++
            # Small payloads are behind 16 bytes of the slot; large ones go directly to their destination.
            data = int((($4 > 4096 ? 0 : 16) + $4 + 4095) / 4096)
            copies = 20 * (data + 1) * (n + l)
            messages = 20 * (data + 1) * (1 + l) + ($2 == "kept" ? 0 : 40 + 20 * l)
            controls = $2 == "kept" ? 0 : 20 * (1 + l)
            if ($8 != messages || ($2 == "subset" && n > 1 ? $9 < 20 * (data + 1) : $9 != copies) || $11 != controls || $12 || $13)
                wrong = wrong "\n" $0
        }
        END { print lines == want ? wrong : "not all lines" wrong; exit lines != want || wrong != "" }' "$work/out" >"$work/wrong" ||
        fail "$n ranks: $(cat "$work/wrong" "$work/out" "$work/err")"
}

# left_in_order N: a job of N ranks that kept a lock gave back everything and left in order, without broken connections. Ranks
# have a second to leave, in which a busy machine may give one no CPU, so one job of three must pass.
left_in_order()
{
    local before after tries
    for tries in 1 2 3; do
        before=$(counter core controls),$(counter core releases),$(counter control left),$(counter control destroyed)
        run 0 "$1" testbcast-seq -i 3 -m switch -k kept -s 8:8
        after=$(counter core controls),$(counter core releases),$(counter control left),$(counter control destroyed)
        awk -v n="$1" -v before="$before" -v after="$after" 'BEGIN {
            split(before, b, ","); split(after, a, ",")
            exit !(a[1] > b[1] && a[1] - b[1] == a[2] - b[2] && a[3] - b[3] == n - 1 && a[4] - b[4] == 1) }' && return
    done
    fail "$1 ranks, $tries jobs, controls, releases, left, destroyed: $before before the job, $after behind it"
}

start --udp "$vips" --lease 60000 || finish
# A queue pair gives up after seven times 4 s, longer than any delay.
export GASNET_MCAST_CTRL=$controller GASNET_MCAST_TIMEOUT=20
if ! grep -q "^#define TK_WITH_MCAST 1" "$top_builddir/config.h"; then # configure --disable-mcast
    run 1 3 testbcast-seq -i 1 -m switch
    [ "$(grep -c "configured with --disable-mcast" "$work/err")" = 1 ] || fail "not one line about it: $(cat "$work/err")"
    GASNET_MCAST=auto run 0 3 testbcast-seq -i 2 -m switch -s 8:8
    [ "$(counter control accepted)" = 0 ] || fail "a library without multicast came to the switch"
    stop
    finish
fi
if [ "${TRUNKLINE_TEST_SANITIZER:-no}" = thread ]; then # ranks read memory while the device writes to it
    run 0 3 testbcast-seq -i 10 -m switch -k fresh,subset -s 64:32768
    GASNET_MCAST_GROUPS=3 run 0 3 collectives-par random 61 3
    stop
    finish
fi
for n in 2 4 8; do
    counted $n
done
counted 40 2
counted 4 0 32768:262144
left_in_order 3

# A switch that gets no CPU for 6 s while a job starts is not given up.
kill -STOP "$switch"
(
    sleep 6
    kill -CONT "$switch"
) &
others=($!)
run 0 3 testbcast-seq -i 2 -m switch -s 8:8
wait "${others[0]}"
others=()

# Payloads with different offsets in the segments go along the tree; the switch has only the group's test at the start and two
# small broadcasts of testbcast.
before=$(copies_once)
run 0 4 testbcast-seq -i 5 -m switch -k fresh -s 32768:32768 -a 64
[ "$(($(copies_once) - before))" = 15 ] || fail "destinations apart: $(($(copies_once) - before)) copies: $(stat)"

# Large ones under loss: repeats, and each byte right.
"$mcswitchd" --socket "$work/socket" loss 1 || fail "loss"
before=$(counter core repeats)
run 0 4 testbcast-seq -i 10 -m switch -k fresh,kept,rotate -s 32768:262144
"$mcswitchd" --socket "$work/socket" loss 0 || fail "no loss"
[ "$(counter core repeats)" -gt "$before" ] || fail "nothing was lost"
GASNET_MCAST_GROUPS=3 run 0 4 collectives-seq random 61 4
GASNET_SUPERNODE_MAXSIZE=2 GASNET_COLL_ALGORITHM=reduce_all=switch run 0 5 collectives-seq random 62 4
# Random subsets, some without the first rank of a neighbourhood: these go over the switch only where each rank is a member.
export GASNET_SUPERNODE_MAXSIZE=2
controls=()
for ranks in 0 32; do
    before=$(counter core controls)
    GASNET_MCAST_RANKS=$ranks run 0 6 testbcast-seq -i 20 -m switch -k subset -s 64:64
    controls+=($(($(counter core controls) - before)))
done
[ "${controls[1]}" -gt "${controls[0]}" ] || fail "as many broadcasts of subsets with each rank a member as without: ${controls[*]}"
GASNET_MCAST_RANKS=0 run 0 5 collectives-seq random 63 4
GASNET_CONNECT_STATIC=0 run 0 5 collectives-seq random 64 4
export GASNET_SUPERNODE_MAXSIZE=1
[ "$(counter core copies)" -gt 1000 ] || fail "the switch copied $(counter core copies) packets"
run 137 3 collectives-seq die

# more_than COUNTER NUMBER: waits until the switch has counted so many
more_than()
{
    local _ count
    for _ in {1..1500}; do
        count=$(counter core "$1" 2>/dev/null)
        [ "${count/none/0}" -le "$2" ] || return 0
        sleep 0.1
    done
    return 1
}

# The death of a switch is noticed after 8 s, which must be longer than any delay in the start of many ranks.
export GASNET_MCAST_TIMEOUT=18

# In the middle of a job with two leaves, which runs until the file exists: it continues, over the new switch.
before=$(counter core copies)
(
    run 0 34 testbcast-seq -i 10 -m switch -k rotate -s 1024:8192 -u "$work/enough"
    exit "$failed"
) &
job=$!
more_than copies $((before + 1000)) || fail "the job does not come to its broadcasts"
kill -9 "$switch"
wait "$switch" 2>/dev/null
rm -f "$work/socket"
sleep 0.2
"$mcswitchd" --control "$controller" --socket "$work/socket" --udp "$vips" >"$work/switch" 2>&1 &
switch=$!
more_than copies 1000 || fail "the job does not return to the new switch"
touch "$work/enough"
wait $job || failed=1
grep -q '^ok' "$work/out" || fail "the switch was killed: $(cat "$work/out" "$work/err")"

stop
run 1 3 testbcast-seq -i 1 -m switch
[ "$(grep -c 'GASNET_MCAST=require: there is no multicast switch for this job: ' "$work/err")" = 1 ] ||
    fail "not one line about no switch: $(cat "$work/err")"
GASNET_MCAST=auto run 0 3 testbcast-seq -i 1 -m switch
finish
