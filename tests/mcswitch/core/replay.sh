#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mcsw-replay writes the bytes of the golden trace for each corner case, in both modes, and clear messages for bad input.
# usage: replay.sh           status 1: a trace differs
#        replay.sh --record  writes the golden traces again
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../../.." && pwd)}" "${top_builddir:=.}"
replay=$top_builddir/contrib/mcswitch/replay/mcsw-replay
writer=$top_builddir/tests/mcswitch/core/write_cases
golden=$top_srcdir/tests/mcswitch/core/golden
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
    echo "$*"
    failed=1
}

for mode in fast strict; do
    mkdir "$dir/$mode"
    "$writer" "$dir/$mode" $mode || fail "a corner case does not hold in mode $mode"
    for n in $(seq -w 1 45); do
        "$replay" "$dir/$mode/$n.conf" "$dir/$mode/$n.pcap" "$dir/$mode/$n.out" || fail "case $n: mcsw-replay fails"
        if [ "${1:-}" = --record ] && [ $mode = fast ]; then
            cp "$dir/$mode/$n.out" "$golden/$n.pcap"
        fi
        cmp "$dir/$mode/$n.out" "$golden/$n.pcap" || fail "case $n, mode $mode: other bytes than in $golden/$n.pcap"
    done
done

# A live capture has no tags: the port is that of the member with the source MAC.
sed 's/^ports .*/ports source/' "$dir/fast/06.conf" >"$dir/source.conf"
"$replay" "$dir/source.conf" "$dir/fast/06.pcap" "$dir/none.out" || fail "ports source: mcsw-replay fails"

refuse() # STATUS PATTERN CONFIG IN
{
    local said status
    said=$("$replay" "$3" "$4" "$dir/x.out" 2>&1)
    status=$?
    [ $status = "$1" ] || fail "status $status for $2"
    echo "$said" | grep -q "$2" || fail "no line with '$2': $said"
}
echo 'group 1 nonsense' >"$dir/bad.conf"
refuse 2 'line 1: not a number' "$dir/bad.conf" "$dir/fast/01.pcap"
sed 's/^vip4 .*/vip4 10.0.0/' "$dir/fast/01.conf" >"$dir/bad.conf"
refuse 2 'not an IP address' "$dir/bad.conf" "$dir/fast/01.pcap"
: >"$dir/bad.conf"
refuse 2 'no group' "$dir/bad.conf" "$dir/fast/01.pcap"
head -c 100 "$dir/fast/01.pcap" >"$dir/cut.pcap"
refuse 1 'not a whole pcap' "$dir/fast/01.conf" "$dir/cut.pcap"
refuse 1 'No such file' "$dir/fast/01.conf" "$dir/absent.pcap"
[ $failed = 0 ] && echo "45 corner cases in 2 modes: the bytes of their golden traces"
exit $failed
