#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tools in a job: rank 0 displays settings, each once; errors and backtraces name the rank; a crash is reported with
# everything that the environment asks for.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# A sanitizer reports crashes itself.
crashes()
{
    if [ "$sanitizer" != no ]; then
        echo "crashes are told by the sanitizer; not tried"
        return
    fi
    SETTINGS="GASNET_BACKTRACE=1 GASNET_BACKTRACE_TYPE=EXECINFO" job 2 "$program" crash
    [ "$status" -ne 0 ] || failed "a crash was survived"
    says 'died of SIGSEGV' 1
    says '^\[1\] .*tools-.*\[0x'
    grep -q '^\[0\] ' "$scratch/err" && failed "rank 0 printed a backtrace though it did not crash"
}

for mode in seq par; do
    program=$jobs/tools-$mode

    SETTINGS="GASNET_VERBOSEENV=1 JOB_TRUTH=yes" good 3 "$program" display
    says 'ENV parameter: JOB_EARLY = 3 (default)$' 1
    says 'ENV parameter: JOB_LATE = 64 KB (default)$' 1
    says 'ENV parameter: JOB_TRUTH = YES$' 1
    says '^trunkline.0@.*ENV parameter: JOB_' 3
    SETTINGS='' good 3 "$program" display
    says 'ENV parameter' 0

    SETTINGS='' job 3 "$program" die
    [ "$status" -ne 0 ] || failed "a fatal error was survived"
    says '^\*\*\* FATAL ERROR (proc 2): in die() at .*tools.c:[0-9]*: rank 2 has had enough$' 1
    says '^\*\*\* NOTICE (proc 2): .*GASNET_BACKTRACE=1' 1

    crashes

    SETTINGS="GASNET_BACKTRACE=1 GASNET_BACKTRACE_TYPE=EXECINFO GASNET_BACKTRACE_NODES=0,2-3" good 4 "$program" print
    for rank in 0:1 1:0 2:1 3:1; do
        says "^rank ${rank%:*}: ${rank#*:}$" 1
    done
done

# thaw N: when so many ranks wait for a debugger, sends them SIGCONT instead. They must still wait a while after their
# message.
thaw()
{
    : >"$scratch/err"
    rm -f "$scratch/gone"
    (
        for _ in $(seq 300); do
            pids=$(sed -n 's/.*process frozen .*pid \([0-9]*\);.*/\1/p' "$scratch/err")
            [ "$(echo "$pids" | wc -w)" -eq "$1" ] && break
            sleep 0.1
        done
        sleep 0.5
        for pid in $pids; do
            kill -CONT "$pid" 2>/dev/null || echo "$pid" >>"$scratch/gone"
        done
    ) &
}
stayed()
{
    wait
    [ ! -e "$scratch/gone" ] || failed "it said so, but did not wait for a debugger: $(cat "$scratch/gone")"
}

frozen='^\*\*\* NOTICE (proc [01]): process frozen for a debugger: host .* set gasnet_frozen to 0'
thaw 2
SETTINGS=GASNET_FREEZE=1 good 2 "$jobs/tools-seq" display
says "$frozen" 2
stayed
thaw 1
SETTINGS=GASNET_FREEZE_SIGNAL=USR1 good 2 "$jobs/tools-seq" signal
says "$frozen" 1
says '^rank [01] went on' 2
stayed
if [ "$sanitizer" = no ]; then
    thaw 1
    SETTINGS=GASNET_FREEZE_ON_ERROR=1 job 2 "$jobs/tools-par" crash
    fails_with 139 "a crash that was frozen"
    says "$frozen" 1
    stayed
fi
SETTINGS="GASNET_BACKTRACE_SIGNAL=USR1 GASNET_BACKTRACE_TYPE=EXECINFO" good 2 "$jobs/tools-seq" signal
says '^\[1\] .*tools-.*\[0x'
says '^rank [01] went on' 2

# The message names the setting, and does not call it unknown
SETTINGS="GASNET_FREEZE_SIGNAL=USR2 GASNET_TSC_RATE=walltime" good 2 "$jobs/tools-seq" display
says 'is no setting' 0
# refused SETTING PATTERN: one line, from the launcher if it can know.
refused()
{
    SETTINGS=$1 job 2 "$jobs/tools-seq" display
    fails_with "${3:-2}" "$1"
    says "$2" 1
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "$1: not one line"
}
refused GASNET_BACKTRACE_SIGNAL=NOSUCH "GASNET_BACKTRACE_SIGNAL='NOSUCH' is not a signal"
refused GASNET_FREEZE_SIGNAL=KILL "GASNET_FREEZE_SIGNAL='KILL' can't be caught"
refused GASNET_TSC_RATE=foo "GASNET_TSC_RATE='foo' is not walltime, cpuinfo or a rate from 1000000 Hz"
refused GASNET_BACKTRACE_TYPE=GDB,FOO "GASNET_BACKTRACE_TYPE='GDB,FOO' names 'FOO', which is not one of USER, GDB, EXECINFO" 1
finish
