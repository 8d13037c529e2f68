#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wrong command line gives one line and status 2.
. "$(dirname "$0")/lib.sh"

wrong()
{
    text=$1
    shift
    promise "wrong: $*"
    job "$@"
    status_is 2
    err_lines 1
    err_has "$text"
    out_is ""
}
wrong 'number of processes is missing'
wrong 'number of processes is missing' "$probe"
wrong 'program to run is missing' -n 2
wrong 'program to run is missing' -n 2 --
wrong 'not a number between' -n 0 "$probe"
wrong 'not a number between' -n x "$probe"
wrong 'not a number between' -n -3 "$probe"
wrong 'not a number between' -n 99999999999999999999 "$probe"
wrong 'not a number between' -np 2x "$probe"
wrong 'needs a value' -n
wrong 'unknown option -q' -q -n 2 "$probe"
wrong 'unknown option --frob' --frob -n 2 "$probe"
wrong 'not found in PATH' -n 2 no-such-program-here
wrong 'No such file' -n 2 /no/such/program
wrong 'Is a directory' -n 2 /tmp
echo text >"$work/text"
wrong 'Permission denied' -n 2 "$work/text"
wrong 'unknown option -nodes;' -nodes 2 "$probe"
wrong 'unknown option -cpus' -n 2 -cpus 2 "$probe"
wrong '--stdin all: not one of none, 0' -n 2 --stdin all "$probe"
wrong 'restarting' -n 2 -restart x "$probe"
wrong '--bind pin: not one of none, core, socket' -n 2 --bind pin "$probe"

# Where to run.
wrong '-spawner=pigeon: unknown spawner; there are' -n 2 -spawner=pigeon "$probe"
GASNET_IBV_SPAWNER=rsh wrong "GASNET_IBV_SPAWNER='rsh': unknown spawner" -n 2 "$probe"
GASNET_SPAWNER=rsh wrong "GASNET_SPAWNER='rsh': unknown spawner" -n 2 "$probe"
wrong '-N 2: only this host is known; name others by' -n 2 -N 2 "$probe"
wrong '-N 2: -spawner=local has this host only' -n 2 -N 2 -spawner=local "$probe"
wrong "-H: 'a:0' is not host, host:slots" -n 2 -H a:0 "$probe"
wrong '-H names no host' -n 2 -H ' ' "$probe"
wrong '-spawner=local: -H names other hosts than this one' -n 2 -H a,b -spawner=local "$probe"
wrong 'virtual hosts (=name) beside others' -n 2 -H a,=b "$probe"
wrong 'names virtual hosts (=name), which only ssh and local can start' -n 2 -H =a -spawner=mpi "$probe"
wrong '-n 3: the 1 host of -H has slots for 2 processes' -n 3 -H localhost:2 "$probe"
wrong '-N 3: -H names 2 hosts' -n 3 -N 3 -H =a,=b "$probe"
wrong '-N 2: more hosts than processes' -n 1 -N 2 -H =a,=b "$probe"
printf 'a\n# b\nb c\n' >"$work/nodes"
wrong "$work/nodes:3: 'b c' is not host" -n 2 --nodefile "$work/nodes" "$probe"
GASNET_SSH_NODEFILE=$work/nodes wrong "$work/nodes:3: 'b c' is not host" -n 2 "$probe"
wrong 'the file of hosts /no/such (--nodefile) cannot be read' -n 2 --nodefile=/no/such "$probe"
wrong 'the file of hosts /no/such (--nodefile) cannot be read' -n 2 -nodefile /no/such "$probe"
wrong 'the file of hosts /no/such (--nodefile) cannot be read' -nodefile=/no/such -n 2 "$probe"
# Endless files of zero bytes and of text.
wrong 'the file of hosts /dev/zero (--nodefile) cannot be read: it is not text' -n 2 --nodefile /dev/zero "$probe"
GASNET_NODEFILE=/dev/zero wrong '(GASNET_NODEFILE) cannot be read: it is not text' -n 2 "$probe"
mkfifo "$work/endless"
yes '#' 2>/dev/null >"$work/endless" &
wrong 'it has more than 16777216 bytes, the limit for such a file' -n 2 --nodefile "$work/endless" "$probe"
wait $!
GASNET_SSH_OUT_DEGREE=-1 wrong "GASNET_SSH_OUT_DEGREE='-1'" -n 2 "$probe"
GASNET_MPIRUN_CMD='mpirun %C' wrong "GASNET_MPIRUN_CMD='mpirun %C' lacks %N" -n 2 -spawner=mpi "$probe"
GASNET_PMIRUN_CMD='/no/such %N %C' wrong 'cannot run /no/such: No such file' -n 2 -spawner=pmi "$probe"
for spawner in mpi pmi; do
    promise "nothing in PATH that is $spawner"
    env PATH=/no/such "$GASNETRUN" -n 2 -spawner=$spawner "$probe" >"$work/out" 2>"$work/err"
    status=$?
    status_is 2
    err_lines 1
    err_has "spawner=$spawner: .* was not found in PATH"
done
wrong 'number of processes is missing' --plan
wrong 'number of processes is missing' --simulate
wrong '-N 5: more hosts than processes' --simulate -n 4 -N 5
for action in --plan --simulate --simulate=barrier --simulate=costs; do
    wrong '-H names the hosts of a job, and --plan and --simulate start none: -N M says how many' $action -n 4 -H a,b
    wrong '--nodefile names the hosts of a job' -nodefile /no/such $action -n 4
    for option in '-c 2' '--bind none' '--stdin none' '-E PATH' -l -t -k '-spawner local'; do
        case $option in
        --stdin*) name=$option ;;
        *) name=${option% *} ;;
        esac
        wrong "$name is for a job, and --plan and --simulate start none" $action -n 4 $option
    done
    wrong "$probe: --plan and --simulate run no program" $action -n 4 "$probe" -N 2
    wrong "$probe: --plan and --simulate run no program" -n 4 $action -- "$probe"
done
wrong '-N 5: more hosts than processes' --plan -n 4 -N 5
wrong "--plan=few: neither 'all' nor a number of peers between 0 and 3" --plan=few -n 4 -N 4
wrong "--plan=4: neither 'all' nor a number of peers between 0 and 3" --plan=4 -n 4 -N 4
GASNET_AM_CREDITS_PP=many wrong "GASNET_AM_CREDITS_PP='many' is not a whole number" --plan -n 4
GASNET_PHYSMEM_MAX=most wrong "GASNET_PHYSMEM_MAX='most' is neither" --plan -n 4 -N 4
GASNET_KILL_GRACE=soon wrong "GASNET_KILL_GRACE='soon' is not a number" -n 2 "$probe"
GASNET_START_TIMEOUT=-1 wrong "GASNET_START_TIMEOUT='-1' is not a number" -n 2 "$probe"
GASNET_SOFTHCA=maybe wrong 'not one of auto|always|never' -n 2 "$probe"
GASNET_SOFTHCA=always SOFTHCA_FAULT=delai wrong 'SOFTHCA_FAULT: .*delai' -n 2 "$probe"
GASNET_KILL_GRACE=' 3 ' GASNET_SOFTHCA=' auto' GASNET_QUIET=' ' job -n 2 "$probe"
[ "$status" -eq 0 ] || fail "blanks around values count: $(cat "$work/err")"

promise "every spelling of the right ones"
for spelling in "-n 2" "-n2" "-np 2" "-np2"; do
    job $spelling "$probe"
    status_is 0
    out_count 'of 2' 2 || fail "$spelling"
done
GASNET_IBV_SPAWNER=mpi job -n 2 -N 1 -E PATH,HOME -spawner=local -- "$probe"
status_is 0
err_lines 0
job -n 1 -- "$probe" say=-n
out_is -n
job -n 2 -- env OWN='x y' sh -c 'echo "$OWN" $0' sh
out_is "x y sh
x y sh"

promise "what cannot be printed is no success"
for option in --help --version --settings "--plan -n 4"; do
    "$GASNETRUN" $option >/dev/full 2>"$work/err"
    status=$?
    status_is 1
    err_lines 1
    err_has 'cannot write standard output: No space left'
done

promise "dry run says what would be run and starts nothing"
job -t -n 2 "$probe" say=hello
status_is 0
out_is ""
err_has '2 processes on .*pmix_probe say=hello'

promise "hosts: which, and where they came from"
job -t -n 5 -N 2 -H =n0,=n1,=n2 "$probe"
status_is 0
err_has '5 processes on 2 hosts:'
err_has 'hosts: from -H$'
err_has '  n0: ranks 0-2$'
err_has '  n1: ranks 3-4$'
SLURM_JOB_NODELIST='big[08-10]' SLURM_TASKS_PER_NODE='2(x2),1' job -t -n 5 "$probe"
status_is 0
err_has 'hosts: from SLURM_JOB_NODELIST of the Slurm job$'
err_has '  big08: ranks 0-1$'
err_has '  big10: rank 4$'
SLURM_JOB_NODELIST='big[08-10]' job -n 2 -spawner=local "$probe"
status_is 0
SLURM_JOB_NODELIST=$(uname -n) SLURM_TASKS_PER_NODE=1 job -n 2 "$probe"
status_is 0
GASNET_SPAWNER=mpi GASNET_IBV_SPAWNER=ssh job -n 2 -H localhost:2 "$probe"
status_is 0
out_count 'of 2' 2 || fail "this host alone is not local"
GASNET_IBV_SPAWNER=pmi GASNET_PMIRUN_CMD="echo %N/%M %P" job -t -n 4 -N 2 "$probe"
status_is 0
out_is ""
err_has "command: echo 4/2 $probe\$"
GASNET_SPAWNER=mpi GASNET_MPIRUN_CMD="echo %N on %H: %P" job -n 3 -H a:2,b:1 "$probe"
status_is 0
out_is "3 on a,b: $probe"
GASNET_MPIRUN_CMD="sh -c 'echo %N; %C'" OWN='x  y' job -spawner=mpi -n 1 -E OWN sh -c 'echo "$OWN" "$1"' - "it's"
out_is "1
x  y it's"

promise "ranks are bound where they are said to be, and only if that is asked for"
cpus="sed -n s/^Cpus_allowed_list:[[:space:]]*//p /proc/self/status"
own=$($cpus)
job -n 2 $cpus
status_is 0
out_is "$own
$own"
for host in "$(uname -n)" n0; do
    [ "$host" = n0 ] && hosts=-H=n0,=n1 || hosts=
    # shellcheck disable=SC2086 # no word, where there is no list
    job -v -n 1 $hosts --bind core $cpus
    status_is 0
    err_has "$host: rank 0 on CPU $(cat "$work/out")\$"
    [ "$(cat "$work/out")" != "$own" ] || [ "$(nproc)" -le 2 ] || fail "not bound"
done
job -n 1 -c 1000000 "$probe"
status_is 1
err_lines 1
err_has 'cannot bind the processes: 1 process with 1000000 CPUs each need more than'
job -n 2 --bind socket -c 1000000 "$probe"
status_is 1
err_has 'do not fit socket 0, of which'
job -n 1 --bind none -c 1000000 $cpus
out_is "$own"

promise "-v tells, -k keeps the session directory"
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -k -v -v -n 2 "$probe" >"$work/out" 2>"$work/err"
status=$?
status_is 0
err_has 'session directory'
err_has 'rank 1 is pid'
[ -n "$(ls "$work/session")" ] || fail "not kept"
rm -rf "$work"/session/*

promise "help, version and settings"
job --help
status_is 0
grep -q '^usage: gasnetrun_ibv' "$work/out" || fail "no help"
job --version
status_is 0
grep -q trunkline "$work/out" || fail "no version"
job --settings
status_is 0
grep -q '^GASNET_AM_CREDITS_PP' "$work/out" || fail "no settings"
exit 0
