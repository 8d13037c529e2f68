#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Jobs by -spawner=mpi under Open MPI: one host, and two whose daemons are started by a command that runs them here. Each part
# is killed. MPICH's mpirun, which has no PMIx server, is refused.
. "$(dirname "$0")/lib.sh"
jobs=$top_builddir/tests/job
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    :
else
    echo "skipped: mpirun of Open MPI is not there (Debian package openmpi-bin)"
    exit 77
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir "$work/mpi"
TMPDIR=$work/mpi
GASNET_SOFTHCA=always
GASNET_SUPERNODE_MAXSIZE=1
GASNET_QP_TIMEOUT=13
export TMPDIR GASNET_SOFTHCA GASNET_SUPERNODE_MAXSIZE GASNET_QP_TIMEOUT

# In place of ssh: the command for a host that is called n0 or n1. Hosts do not share a /tmp: two
# daemons that create the job's directory in one /tmp at the same time can both find it missing, and
# the second then gives up.
cat >"$work/agent" <<'END'
#!/bin/sh
TMPDIR=$TMPDIR/$1
export TMPDIR
mkdir -p "$TMPDIR" || exit 1
shift
exec sh -c "$*"
END
chmod +x "$work/agent"
OMPI_MCA_plm_rsh_agent=$work/agent
export OMPI_MCA_plm_rsh_agent
# mpirun ends when the ranks have, and its daemons on the other hosts a moment later.
settle=20

promise "mpirun starts the ranks, with arguments and what -E names"
OWN='a  b;c' job -spawner=mpi -n 4 -E OWN sh -c 'echo "$OWN:$1" >&2; exec "$2"' - "c 'd'" "$jobs/hello-seq"
status_is 0
out_has '^4 ranks over verbs' || fail "not one job of four"
[ "$(grep -c "^a  b;c:c 'd'\$" "$work/err")" -eq 4 ] || fail "not all ranks were given the arguments"
for program in am-seq credits-par; do
    job -spawner=mpi -n 3 "$jobs/$program"
    status_is 0
    [ "$(grep -c '^ok$' "$work/out")" -eq 1 ] || fail "$program: not one job"
done

promise "the hosts that are named get the ranks that they should"
job -spawner=mpi -n 4 -H n0:1,n1:3 sh -c 'echo "$OMPI_COMM_WORLD_RANK is $OMPI_COMM_WORLD_LOCAL_RANK of $OMPI_COMM_WORLD_LOCAL_SIZE"; exec "$1" >&2' - "$jobs/hello-seq"
status_is 0
[ "$(sort "$work/out" | paste -s -d ,)" = "0 is 0 of 1,1 is 0 of 3,2 is 1 of 3,3 is 2 of 3" ] || fail "the layout is another"
err_has '^4 ranks over verbs'

promise "a command of one's own"
GASNET_MPIRUN_CMD="mpirun --oversubscribe -np %N %C" OWN="x;y" job -spawner=mpi -n 2 -E OWN sh -c 'echo "$OWN $GASNET_SOFTHCA"; exec "$1"' - "$jobs/hello-seq"
status_is 0
out_has '^2 ranks over verbs' && out_count '^x;y always$' 2 || fail "the environment did not travel"

if command -v mpirun.mpich >/dev/null; then
    promise "MPICH's mpirun is no PMIx server"
    mkdir "$work/bin"
    ln -s "$(command -v mpirun.mpich)" "$work/bin/mpirun"
    env PATH="$work/bin:$PATH" "$GASNETRUN" -spawner=mpi -n 2 "$jobs/hello-seq" >"$work/out" 2>"$work/err"
    status=$?
    status_is 2
    err_lines 1
    err_has 'is that of MPICH'
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 $limit mpirun.mpich -n 2 "$jobs/hello-seq" >"$work/out" 2>"$work/err"
    status=$?
    [ $status -ne 0 ] || fail "status 0"
    out_is ""
    [ "$(grep -c "one of 2 ranks (PMI_SIZE=2), but the launcher's PMIx server" "$work/err")" -ge 1 ] || fail "no sentence"
else
    echo "not tried: mpirun.mpich is not there (Debian package mpich)"
fi

alive() { for p in $(named stress-seq); do grep -qs '^State:.*Z' "/proc/$p/status" || echo "$p"; done; }
all_run() { [ "$(alive | wc -l)" -eq 4 ]; }
none_alive() { [ -z "$(alive)" ]; }
parent_of() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"; }
long_job()
{
    start -spawner=mpi -n 4 -H n0:2,n1:2 "$jobs/stress-seq" 100000000
    eventually 30 all_run || fail "not started"
}

# ends_after SIGNALLED: kills it; the job fails and no process of it survives
ends_after()
{
    kill -KILL "$1"
    finish
    [ "$status" -ne 0 ] || fail "status 0"
    eventually 30 none_alive || fail "ranks are left"
}

promise "a rank is killed"
long_job
ends_after "$(alive | tail -n 1)"
promise "a daemon of mpirun is killed"
long_job
ends_after "$(parent_of "$(alive | tail -n 1)")"
promise "mpirun is killed"
long_job
ends_after "$job_pid"
exit 0
