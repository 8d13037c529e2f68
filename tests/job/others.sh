#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --top and --explain find the ranks of this host that mpirun started, by a rank's pid and by mpirun's, and
# notice when they end.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
command -v mpirun >/dev/null || skip "mpirun is not there (Debian package openmpi-bin)"
mpirun --version 2>&1 | grep -q 'Open MPI' || skip "mpirun is not that of Open MPI"
patience=60 # seconds that bound a failure only
mkdir "$scratch/tmp"
root=
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
command="mpirun -n 3 hang-seq barrier"
# shellcheck disable=SC2086 # may be empty
TMPDIR=$scratch/tmp SOFTHCA_FABRIC=others-$$ JOB_DEADLINE=$((limit - 10)) mpirun $root --oversubscribe -n 3 \
    env LD_PRELOAD="$top_builddir/contrib/softhca/libsofthca.so" "$jobs/hang-seq" barrier "$scratch/mark" \
    </dev/null >"$scratch/out" 2>"$scratch/err" &
launcher=$!

# until_says PATTERN COMMAND...: repeats it until a line of what it prints matches.
until_says()
{
    until_end=$((SECONDS + patience))
    pattern=$1
    shift
    until "$@" >"$scratch/text" 2>&1 && grep -qE -e "$pattern" "$scratch/text"; do
        [ $SECONDS -lt $until_end ] && kill -0 "$launcher" 2>/dev/null || {
            failed "$*: no line '$pattern', but: $(cat "$scratch/text")"
            return
        }
        sleep 0.2
    done
}

PATH=$scratch:$PATH # without gdb's seconds
printf '#!/bin/sh\n' >"$scratch/gdb" && chmod +x "$scratch/gdb"
until_says '^  ranks? 0.* in barrier [0-9]+: rank 2 has not entered it' "$GASNETRUN" --explain "$launcher"
grep -q '^gasnetrun_ibv: job of process [0-9]*, 3 of 3 processes of hang-seq, on this host:$' "$scratch/text" ||
    failed "another first line: $(head -1 "$scratch/text")"
first=$(sed -n 's/^gasnetrun_ibv: job of process \([0-9]*\),.*/\1/p' "$scratch/text")
until_says '^ +1 .* event' "$GASNETRUN" --top --once "$first"
until_says "^{\"job\":$first,\"program\":\"hang-seq\",\"size\":3,.*\"rank\":2," "$GASNETRUN" --top --once --json "$launcher"
for pid in $(grep -o '"pid":[0-9]*' "$scratch/text" | cut -d: -f2); do
    kill -0 "$pid" || failed "there is no process $pid"
done
kill "$launcher"
wait "$launcher" 2>/dev/null
until_end=$((SECONDS + patience))
while "$GASNETRUN" --explain "$first" >"$scratch/text" 2>&1 && [ $SECONDS -lt $until_end ]; do
    sleep 0.2
done
grep -q 'no gasnetrun_ibv of this user with that pid' "$scratch/text" || failed "after the job: $(cat "$scratch/text")"
finish
