#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The same programs without a launcher, under other launchers, and as another user.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
hello=$jobs/hello-seq

# plain COMMAND...: not through our launcher.
plain()
{
    command=$*
    "$watchdog" "$limit" "$@" </dev/null >"$scratch/out" 2>"$scratch/err"
    status=$?
}

# Alone: a job of one.
plain "$hello"
fails_with 0 "alone"
grep -q '^1 ranks over self' "$scratch/out" || failed "alone: not a job of one"
plain "$jobs/am-par"
fails_with 0 "alone"
# The environment says that there are four ranks, but no launcher answers: they must not become four jobs of one rank.
plain env TRUNKLINE_LAUNCHED=4 "$hello"
fails_with 1 "a launcher that is not there"
says 'one of 4 ranks .* server can.t be reached' 1
# A rank whose server is dead, without a number of ranks in the environment.
plain env PMIX_NAMESPACE=gone PMIX_RANK=3 "PMIX_SERVER_URI41=gone.0;tcp4://127.0.0.1:1" "PMIX_SERVER_URI4=gone.0;tcp4://127.0.0.1:1" "$hello"
fails_with 1 "a rank of a dead server"
says 'a rank of a job (PMIX_RANK=3).* server can.t be reached' 1

# A job inside of a rank of another job, and two jobs at once.
plain "$GASNETRUN" -n 2 "$GASNETRUN" -n 2 "$hello"
fails_with 0 "a job in a job"
[ "$(grep -c '^2 ranks over' "$scratch/out")" -eq 2 ] || failed "a job in a job: not twice two ranks"
command="two jobs at once"
"$watchdog" "$limit" "$GASNETRUN" -n 3 "$jobs/credits-seq" 50 </dev/null >"$scratch/out1" 2>"$scratch/err1" &
first=$!
"$watchdog" "$limit" "$GASNETRUN" -n 3 "$jobs/credits-seq" 50 </dev/null >"$scratch/out" 2>"$scratch/err"
status=$?
fails_with 0 "the second of two jobs"
wait $first
status=$?
cp "$scratch/err1" "$scratch/err"
fails_with 0 "the first of two jobs"

# Another PMIx server. Its daemons outlive the command for a moment, so it runs under a time limit instead of the watchdog.
if command -v mpirun >/dev/null; then
    softhca=$top_builddir/contrib/softhca/libsofthca.so
    mkdir "$scratch/mpi"
    root=
    [ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
    for program in hello-seq am-seq credits-par; do
        command="mpirun -n 2 $program"
        # shellcheck disable=SC2086 # may be empty
        TMPDIR=$scratch/mpi SOFTHCA_FABRIC=mpirun-$$ timeout -k 5 "$limit" mpirun $root --oversubscribe -n 2 \
            env LD_PRELOAD="$softhca" "$jobs/$program" </dev/null >"$scratch/out" 2>"$scratch/err"
        status=$?
        fails_with 0 "$command"
        [ "$(grep -c '^ok$' "$scratch/out")" -eq 1 ] || failed "$command: not one job"
    done
    # Without a port the error says how mpirun gets one, and that is true.
    if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
        for way in "" "$top_builddir/contrib/softhca/softhca run --"; do
            command="$way mpirun -n 2 hello-seq"
            # shellcheck disable=SC2086 # may be empty
            TMPDIR=$scratch/mpi SOFTHCA_FABRIC=mpirun-$$ timeout -k 5 "$limit" $way mpirun $root --oversubscribe -n 2 \
                "$hello" </dev/null >"$scratch/out" 2>"$scratch/err"
            status=$?
            if [ -n "$way" ]; then
                fails_with 0 "$command"
            else
                [ "$status" -ne 0 ] || failed "a job without a port"
                says 'no RDMA device on this host; .* over the software device: softhca run -- mpirun \.\.\.' 1
            fi
        done
    fi
else
    echo "not tried: mpirun is not there (Debian package openmpi-bin)"
fi

# As root, also as the user "nobody", if that user can read the build tree.
if [ "$(id -u)" -ne 0 ]; then
    echo "ran as $(id -un); as root this also runs as nobody"
elif ! command -v setpriv >/dev/null || ! setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$hello" -a -x "$GASNETRUN"; then
    echo "not tried: nobody cannot read $top_builddir"
else
    for program in hello-seq am-seq putget-par credits-par exit-seq; do
        plain setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ TMPDIR=/tmp XDG_RUNTIME_DIR= \
            "$GASNETRUN" -n 3 "$jobs/$program" 3
        code=0
        [ $program != exit-seq ] || code=3
        fails_with $code "$program as nobody"
    done
fi
finish
