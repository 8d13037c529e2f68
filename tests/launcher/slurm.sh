#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Jobs under Slurm: its own daemons on ports of their own, two nodes that are this machine. Started by -spawner=pmi, by srun
# itself, and inside of an allocation; then each part is killed.
. "$(dirname "$0")/lib.sh"
jobs=$top_builddir/tests/job

for program in slurmctld slurmd srun salloc scancel; do
    command -v $program >/dev/null || {
        echo "skipped: $program is not there (Debian packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins)"
        exit 77
    }
done
[ "$(id -u)" -eq 0 ] || {
    echo "skipped: slurmd wants root"
    exit 77
}
daemon_mark=$mark-daemon
cleanup_slurm()
{
    result=$?
    for p in $(grep -las "SLURM_TEST_DAEMON=$daemon_mark" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'); do
        kill -KILL "$p" 2>/dev/null
    done
    (exit $result)
    cleanup
}
trap cleanup_slurm EXIT

# configure PORT. The directory of TmpFS is what the plug-in for PMIx puts sockets into: one name for both nodes, in
# /tmp, if they had no directories of their own.
configure()
{
    cat >"$work/slurm.conf" <<END
ClusterName=check
SlurmctldHost=$(uname -n | cut -d. -f1)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$1
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
TmpFS=$work/tmp.%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
SlurmdParameters=config_overrides
NodeName=n0 NodeHostname=$(uname -n | cut -d. -f1) NodeAddr=127.0.0.1 Port=$(($1 + 1)) CPUs=8
NodeName=n1 NodeHostname=$(uname -n | cut -d. -f1) NodeAddr=127.0.0.1 Port=$(($1 + 2)) CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES:8
END
    : >"$work/cgroup.conf"
    mkdir -p "$work/state" "$work/n0" "$work/n1" "$work/tmp.n0" "$work/tmp.n1"
}

daemon()
{
    SLURM_TEST_DAEMON=$daemon_mark "$@" </dev/null >>"$work/daemons.log" 2>&1 &
}

is_up() { [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }

SLURM_CONF=$work/slurm.conf
export SLURM_CONF
configure $((10000 + $$ * 3 % 20000))
promise "Slurm's daemons start"
daemon slurmctld -D
daemon slurmd -D -N n0
daemon slurmd -D -N n1
# srun returns when the ranks have ended; the daemons remove the ranks' files a moment later.
settle=20

eventually 20 is_up || {
    tail -n 5 "$work"/*.log
    fail "no two idle nodes"
}

# Over the network, as nodes of a cluster would; a packet not acknowledged in half a second is lost.
GASNET_SOFTHCA=always
GASNET_SUPERNODE_MAXSIZE=1
GASNET_QP_TIMEOUT=13
export GASNET_SOFTHCA GASNET_SUPERNODE_MAXSIZE GASNET_QP_TIMEOUT

promise "srun starts the ranks, with arguments and what -E names"
OWN='a  b' job -spawner=pmi -n 4 -N 2 -E OWN sh -c 'echo "$OWN:$1:$SLURM_NNODES" >&2; exec "$2"' - "c 'd'" "$jobs/hello-seq"
status_is 0
out_has '^4 ranks over verbs' || fail "not one job of four"
[ "$(grep -c "^a  b:c 'd':2\$" "$work/err")" -eq 4 ] || fail "not all ranks were given the arguments"
for program in am-seq credits-par; do
    job -spawner=pmi -n 3 -N 2 "$jobs/$program"
    status_is 0
    [ "$(grep -c '^ok$' "$work/out")" -eq 1 ] || fail "$program: not one job"
done

promise "the hosts that are named get the ranks that they should"
job -spawner=pmi -n 4 -H n1:1,n0:3 sh -c 'echo "$SLURM_PROCID on $SLURMD_NODENAME"'
status_is 0
[ "$(sort "$work/out" | paste -s -d ,)" = "0 on n1,1 on n0,2 on n0,3 on n0" ] || fail "the layout is another"

promise "the status of a job"
job -spawner=pmi -n 2 "$jobs/exit-seq" 3
status_is 3

promise "without PMIx n ranks are never n jobs"
command=$jobs/hello-seq
TRUNKLINE_TEST_MARK=$mark timeout -k 1 $limit srun -n 2 "$command" >"$work/out" 2>"$work/err"
status=$?
[ $status -ne 0 ] || fail "status 0"
out_is ""
[ "$(grep -c "one of 2 ranks (SLURM_STEP_NUM_TASKS=2), but the launcher's PMIx server" "$work/err")" -eq 2 ] || fail "no sentence"
clean

promise "in an allocation a program alone is a job of one, and the launcher knows the hosts"
TRUNKLINE_TEST_MARK=$mark timeout -k 1 $limit salloc -Q -n 3 -N 2 sh -c '"$1"; "$2" -t -n 3 "$1"; "$2" -n 4 "$1"; true' - \
    "$command" "$GASNETRUN" >"$work/out" 2>"$work/err"
status=$?
status_is 0
out_has '^1 ranks over self' || fail "the program did not run alone"
err_has 'hosts: from SLURM_JOB_NODELIST of the Slurm job'
err_has '  n0: ranks 0-1$'
err_has '  n1: rank 2$'
err_has '-n 4: the 2 hosts of SLURM_JOB_NODELIST of the Slurm job have slots for 3 processes'
clean

# all_run N: N ranks live
all_run() { [ "$(named stress-seq | wc -l)" -eq "$1" ]; }
alive() { for p in $(named stress-seq); do grep -qs '^State:.*Z' "/proc/$p/status" || echo "$p"; done; }
none_alive() { [ -z "$(alive)" ]; }
under_srun()
{
    start -spawner=pmi -n 4 -N 2 "$jobs/stress-seq" 100000000
    eventually 30 all_run 4 || fail "not started"
}
parent_of() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"; }
first_rank() { named stress-seq | head -n 1; }

promise "--explain and --top find the ranks that srun started, by one's pid"
mkdir "$work/bin" # no stacks: gdb takes seconds
printf '#!/bin/sh\n' >"$work/bin/gdb" && chmod +x "$work/bin/gdb"
says() # PATTERN ARGUMENTS...: a line of what the launcher prints matches
{
    pattern=$1
    shift
    PATH=$work/bin:$PATH "$GASNETRUN" "$@" "$(named hang-seq | head -n 1)" >"$work/said" 2>&1
    grep -qE -e "$pattern" "$work/said"
}
start -spawner=pmi -n 3 -N 1 "$jobs/hang-seq" barrier "$work/hung"
eventually 30 says '^  ranks? 0.* in barrier [0-9]+: rank 2 has not entered it' --explain || fail "$(cat "$work/said")"
grep -q '3 of 3 processes of hang-seq, on this host:$' "$work/said" || fail "$(head -n 1 "$work/said")"
eventually 30 says '^ +1 .* event' --top --once || fail "$(cat "$work/said")"
for p in $(named hang-seq); do
    kill -KILL "$p" 2>/dev/null
done
finish

promise "a rank is killed"
under_srun
kill -KILL "$(first_rank)"
finish
[ "$status" -ne 0 ] || fail "status 0"
eventually 20 none_alive || fail "ranks are left"

promise "srun is killed"
under_srun
kill -KILL "$job_pid"
finish
eventually 20 none_alive || fail "ranks are left"

# Slurm does not notice this by itself, so the ranks of that node have to. The ranks of the other
# node notice when they next need a peer, or wait in a fence for as long as Slurm does: then the
# user has to end the job.
promise "the daemon of a step is killed"
under_srun
step=$(parent_of "$(first_rank)")
orphans=
for p in $(alive); do
    [ "$(parent_of "$p")" != "$step" ] || orphans="$orphans $p"
done
[ "$(echo $orphans | wc -w)" -eq 2 ] || fail "not two ranks on a node"
kill -KILL "$step"
for p in $orphans; do
    eventually 20 gone "$p" || fail "rank $p of the node goes on"
done
scancel -u root
kill -KILL "$job_pid"
finish
eventually 20 none_alive || fail "ranks are left"
exit 0
