#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Three machines with the kernel's Soft-RoCE, joined by mcswitchd (datagram sockets of QEMU): each broadcasts to all and to subsets,
# all at once, with the lock kept, with plain verbs; then a job does, over the switch and along trees. Nothing is lost; then the
# same with 1 % of all frames lost each way.
. "$(dirname "$0")/vm.sh"
needs_machines
. "$top_srcdir/tests/mcswitch/common.sh"
# UDP, since a Unix socket holds ten datagrams only (net.unix.max_dgram_qlen).
base=$((30000 + $$ % 2000)) ports=()
for k in 1 2 3; do
    ports+=(--port "dgram:127.0.0.1:$((base + 100 + k)),127.0.0.1:$((base + k))")
done
# A host that emulates three machines may stop one for seconds.
start --vip 10.0.0.250,10.0.0.251 "${ports[@]}" --lease 30000 || finish

# The guests reach the controller as 10.1.0.254. What they print is also the sign to read counters and for loss to begin; they wait
# until a file says that this is done.
mkdir "$work/done"
"$rxe_vm/rxe-machines" run -t 900 -N 3 -n 1 --dgram $base --host --rw "$work/done" -- bash "$top_srcdir/tests/vm/guest-mcswitch.sh" \
    "10.1.0.254:${controller##*:}" "$work/done" >"$work/out" 2>&1 &
others=($!)
# until_guest WORDS
until_guest()
{
    until grep -q "$1" "$work/out" || ! kill -0 "${others[0]}" 2>/dev/null; do sleep 0.2; done
}

# plain_copies SINCE: since then, one copy for each receiver and packet of the last round of plain verbs
plain_copies()
{
    local wanted copies
    wanted=$(sed -n 's/^copies //p' "$work/out" | tail -1) copies=$(($(copies_once) - $1))
    [ "$copies" = "$wanted" ] || fail "$copies copies without those of repeats, $wanted wanted"
}

until_guest 'ready for jobs'
plain_copies 0
before=$(counter core copies) steals=$(counter core steals)
repeats=$(($(counter core repeats) + $(counter core acks_local)))
: >"$work/done/jobs"
until_guest 'ready for loss'
stat >"$work/clean"
copies=$(($(counter core copies) - before)) steals=$(($(counter core steals) - steals))
repeats=$(($(counter core repeats) + $(counter core acks_local) - repeats))
since=$(copies_once)
"$mcswitchd" --socket "$work/socket" loss 1 || fail "loss"
: >"$work/done/loss"
until_guest 'ready for jobs with loss'
plain_copies "$since"
: >"$work/done/jobs-with-loss"
wait "${others[0]}" || fail "status $?: $(cat "$work/out")"
others=()
cat "$work/out" "$work/clean"
echo "with 1 % loss:"
stat
# Of each size 10 broadcasts fresh and 10 kept to two receivers, each a stamp and the data: one packet up to 512 bytes, two of 4096, eight of
# 32768.
[ $copies -ge 720 ] || grep -q 'the multicast switch broke' "$work/out" || fail "the job's broadcasts were $copies copies"
[ "$(awk '$1 == "core" { print $2 == "requests_in" ? $3 : 0 }' "$work/clean")" -gt 100 ] || fail "few requests came"
[ $repeats -eq 0 ] && [ $steals -eq 0 ] || fail "without loss $repeats packets came again to the switch, and $steals locks were stolen"
grep -q ' drop_icrc 0 ' "$work/clean" || fail "a wrong ICRC"
[ "$(counter port lost_in)" -gt 0 ] || fail "nothing was lost"
stop
finish
