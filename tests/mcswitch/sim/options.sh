#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mcsw-sim: a wrong option is one line with the legal range and status 2; a run is repeated exactly by its seed.
set -u
: "${top_builddir:=.}"
sim=$top_builddir/contrib/mcswitch/mcsw-sim
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

wrong()
{
    echo "$*"
    bad=1
}

# refuses TEXT option...: status 2, one line, which contains TEXT
refuses()
{
    text=$1
    shift
    "$sim" "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status -eq 2 ] || wrong "mcsw-sim $*: status $status instead of 2"
    [ "$(wc -l <"$work/err")" -eq 1 ] || wrong "mcsw-sim $*: not one line: $(cat "$work/err")"
    grep -qF -- "$text" "$work/err" || wrong "mcsw-sim $*: lacks '$text': $(cat "$work/err")"
    [ ! -s "$work/out" ] || wrong "mcsw-sim $*: runs all the same"
}

refuses 'from 2 to 256' --members 1
refuses 'from 2 to 256' --members 257
refuses 'from 2 to 256' --members many
refuses 'from 2 to 256' --members
refuses 'from 2 to 256' --members -4
refuses 'one level has 2 to 32; use --levels 2' --members 33
refuses 'the root has 1 to 32' --members 64 --levels 2 --leaf 1
refuses 'has up to' --members 96 --levels 2 --leaf 4
refuses 'from 1 to 2' --levels 3
refuses 'from 0 to 50' --loss 51
refuses 'from 0 to 50' --loss=1x
refuses '1024, 2048 or 4096' --mtu 1500
refuses 'exact, scan, rounds' --aggregate median
refuses 'this build has none' --mutant 1
refuses "unknown option '--member'" --member 4
refuses "unknown option '6'" 6
refuses "unknown option '--alone=1'" --alone=1
"$sim" --help >/dev/full 2>/dev/null && wrong "mcsw-sim --help on a full disk has status 0"
"$sim" --help | grep -q -- --aggregate || wrong "mcsw-sim --help lacks --aggregate"

run="--loss 2 --dup 5 --reorder 10 --deaths 2 --broadcasts 60 --keep 40"
# shellcheck disable=SC2086 # options
for n in 1 2 3; do
    "$sim" $run --seed $((n / 3 + 7)) >"$work/run$n" || wrong "mcsw-sim $run: $(cat "$work/run$n")"
done
cmp -s "$work/run1" "$work/run2" || wrong "the same seed gives two different runs"
cmp -s "$work/run1" "$work/run3" && wrong "two seeds give the same run"
exit $bad
