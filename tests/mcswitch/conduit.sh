#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose broadcasts go over mcswitchd, on softhca's packets: what the switch counts for each broadcast, by testbcast; random
# collectives beside it, also with ranks that share a member; a switch that is killed and comes back, one that is not there, and a
# rank that dies; more neighbourhoods than one level of the switch has.
. "${top_srcdir:?}/tests/mcswitch/common.sh"
: "${GASNETRUN:?}"
jobs=$top_builddir/tests/job
export SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1 GASNET_MCAST=require GASNET_QUIET=1 JOB_DEADLINE=80 TMPDIR=$work

# run STATUS N PROGRAM [ARGS...]: a job
run()
{
    local want=$1 n=$2 got
    shift 2
    "$jobs/watchdog" 90 "$GASNETRUN" -n "$n" "$jobs/$1" "${@:2}" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = "$want" ] || fail "$n ranks, $*: status $got, not $want: $(tail -5 "$work/err")"
}

# counted N [LEAVES]: of 20 broadcasts of 8 and of 64 bytes to N - 1 receivers, exactly the messages that there must be. On two levels
# each leaf gets a control and copies, too; random subsets may leave one out. A machine that is busy for longer than an acknowledgement
# may take makes repeats, and a root that is silent for long gives the lock back: each line of the table must be without once.
# Ports with a limit, which is none here, give an acknowledgement 50 ms.
counted()
{
    local try n=$1 leaves=${2:-0} kinds=fresh,kept,subset sizes=8:64 lines=6
    [ "$leaves" = 0 ] || kinds=fresh,kept sizes=8:8 lines=2
    : >"$work/lines"
    for try in {1..12}; do
        SOFTHCA_RATE=100000 run 0 "$n" testbcast-seq -i 20 -m switch -k $kinds -s $sizes -S "$work/socket"
        cat "$work/out" >>"$work/lines"
        awk -v n=$((n - 1)) -v l=$((leaves)) -v want=$lines '
            $1 == "switch" && !$12 && !$13 && ($2 != "kept" || $11 <= 1 + l) {
                good[$2 $4] = 1
                if ($2 == "fresh" && ($8 != 80 + 60 * l || $9 != 40 * (n + l) || $11 != 20 * (1 + l)) ||
                    $2 == "kept" && ($8 < 40 * (1 + l) || $8 > 42 + 41 * l || $9 != 40 * (n + l)) ||
                    $2 == "subset" && n > 1 && ($8 < 76 || $8 > 81 || $11 < 19 || $11 > 20))
                    wrong = wrong "\n" $0
            }
            END { for (line in good) lines++; if (wrong) { print wrong; exit 1 } exit lines == want ? 0 : 3 }' "$work/lines" >"$work/wrong"
        case $? in
        0) return ;;
        1) break ;;
        esac
    done
    fail "$n ranks (try $try): $(cat "$work/wrong" "$work/lines" "$work/err")"
}

start --udp "$vips" || finish
export GASNET_MCAST_CTRL=$controller
for n in 2 4 8; do
    counted $n
done
counted 40 2
GASNET_MCAST_GROUPS=3 run 0 4 collectives-seq random 61 4
GASNET_SUPERNODE_MAXSIZE=2 GASNET_COLL_ALGORITHM=reduce_all=switch run 0 5 collectives-seq random 62 4
[ "$(counter core copies)" -gt 1000 ] || fail "the switch copied $(counter core copies) packets"
run 137 3 collectives-seq die

# more_than COUNTER NUMBER: waits until the switch has counted so many
more_than()
{
    local _ count
    for _ in {1..600}; do
        count=$(counter core "$1" 2>/dev/null)
        [ "${count/none/0}" -le "$2" ] || return 0
        sleep 0.1
    done
    return 1
}

# In the middle of a job of two leaves, which lasts until the file is there: it goes on, and over the new switch.
before=$(counter core copies)
(
    run 0 34 testbcast-seq -i 20 -m switch -k rotate -s 8:8 -u "$work/enough"
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
