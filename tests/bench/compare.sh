#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/bench/compare names exactly the results that got worse by more than the spread; wrong use is status 2.
set -u
compare=${top_srcdir:?}/tests/bench/compare
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail()
{
    echo "compare.sh: $*" >&2
    cat "$dir/out" >&2
    exit 1
}

# page LATENCY RATE INSTRUCTIONS: of three operations
page()
{
    cat <<END
## The interface beside raw verbs (\`make bench-verbs\`)

    operation             bytes       conduit           raw            unit                ratio    best
    put latency               8          0.06          0.06 write      us       $1    1.04  aim <= 1.25: met
    put flood                 8      19567.47      17258.74 write      kop/s    $2    1.04

## Instructions (\`make bench-instructions\`)

    put-8                  seq       $3      486.1       18.3      646.8      -
END
}

# expect STATUS TEXT OLD NEW
expect()
{
    "$compare" "$dir/$3" "$dir/$4" >"$dir/out" 2>&1
    local status=$?
    [ $status -eq "$1" ] || fail "$3, $4: status $status, not $1"
    grep -qE -- "$2" "$dir/out" || fail "$3, $4: no line has '$2'"
}

page "1.03 (1.02-1.04)" "1.15 (1.03-1.17)" 142.5 >"$dir/old"
page "1.10 (1.04-1.12)" "1.01 (0.90-1.05)" 142.9 >"$dir/same"
page "1.10 (1.05-1.12)" "1.15 (1.03-1.17)" 142.5 >"$dir/slow"
page "1.03 (1.02-1.04)" "1.01 (0.90-1.02)" 142.5 >"$dir/low"
page "0.90 (0.89-0.91)" "1.30 (1.20-1.40)" 150.0 >"$dir/mixed"
echo "nothing" >"$dir/empty"
expect 0 "^3 compared: 0 worse, 0 better" old old
expect 0 "^3 compared: 0 worse, 0 better" old same
expect 1 "^worse +6\.8 %  bench-verbs: put latency 8, ratio 1: 1\.03 -> 1\.1$" old slow
expect 1 "^worse +13\.9 %  bench-verbs: put flood 8" old low
expect 1 "^worse +5\.3 %  bench-instructions: put-8 seq, instructions: 142\.5 -> 150$" old mixed
expect 1 "^3 compared: 1 worse, 2 better" old mixed
expect 0 "^3 compared: 0 worse, 1 better" slow old
expect 2 "no line that can be compared" old empty
expect 2 "neither a file nor a revision" old missing
"$compare" --nonsense 2>/dev/null
[ $? -eq 2 ] || fail "an unknown option is not status 2"
