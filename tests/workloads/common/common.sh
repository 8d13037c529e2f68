#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The common part of workloads as a job: --help and refusals come once, in one line, with the right status; parameters that
# differ between ranks are noticed; records arrive; one rank stops all; the report is there three times.
workload=sample
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
program=$top_builddir/tests/workloads/common/sample
ranks=3

job 3 "$program" --help
passes help
[ "$(grep -c '^usage: gasnetrun_ibv' "$scratch/out")" -eq 1 ] || failed "help was not said once"
refused 'unknown option --nonsense' --nonsense 1
refused "'1x' is not a number from 0.01 to 86400 s" --duration 1x
printf '#!/bin/sh\nexec %s --duration 0.1 --seed $((PMIX_RANK / 2))\n' "$program" >"$scratch/differ"
chmod 755 "$scratch/differ"
program=$scratch/differ refused 'rank 2 was given other parameters than rank 0'

job 3 "$program" --duration 0.2 --warmup 0.1 --json "$scratch/a.json" --csv "$scratch/a.csv"
passes run
grep -q '^summary  stopped  *false$' "$scratch/out" || failed "nobody stopped it"
# Over a software device the report has to say so.
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    grep -q '"software_rdma": true' "$scratch/a.json" || failed "the report is silent about its device"
fi
json_holds "$scratch/a.json" 'r["params"]["ranks"] == 3'
job 2 "$program" --duration 30 --stopper 1 --csv "$scratch/a.csv"
passes stop
within 10
grep -q '^summary  stopped  *true$' "$scratch/out" || failed "the stop was not seen"
[ "$(wc -l <"$scratch/a.csv")" -eq 3 ] || failed "not a header and two rows"
# The report's destination is checked before anything runs.
for format in json csv; do
    ranks=2 refused "--$format /nowhere/x can't be written: No such file or directory" --duration 60 --$format /nowhere/x
    ranks=2 refused "--$format $scratch can't be written: Is a directory" --duration 60 --$format "$scratch"
done
for format in json csv; do
    job 2 "$program" --duration 0.01 --warmup 0 --$format /dev/full
    fails_with 1 "a device that is full"
    says "^sample: /dev/full can't be written" 1
    one_line "--$format /dev/full"
done
finish
