#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests judge.sh: each of its functions rejects exactly the jobs that it should. The launcher
# is a script that prints prepared output.
workload=kv
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
printf '#!/bin/sh\nprintf %%b "$SAYS"\nprintf %%b "$COMPLAINS" >&2\nexit "$ENDS"\n' >"$scratch/launcher"
chmod 755 "$scratch/launcher"
GASNETRUN=$scratch/launcher
export GASNET_SOFTHCA=never # such a job leaves no counts
wrong=0
sanitizer=no # each of them is judged

# expect FAILS SAYS COMPLAINS STATUS FUNCTION...: FAILS is 1 when the function must find a fault.
expect()
{
    expected=$1
    export SAYS=$2 COMPLAINS=$3 ENDS=$4
    shift 4
    failures=0
    "$@" >"$scratch/judgement" 2>&1
    [ $((failures > 0)) -eq "$expected" ] && return
    echo "FAILED: $*: $failures faults with '$SAYS' '$COMPLAINS' $ENDS"
    cat "$scratch/judgement"
    wrong=$((wrong + 1))
}

expect 0 'PASS\n' '' 0 good_run 2 x
expect 1 'FAIL\n' '' 0 good_run 2 x
expect 1 'PASS\n' '' 1 good_run 2 x
expect 1 '' '' 0 good_run 2 x
expect 0 'FAIL\n' 'kv: K4 failed\n' 1 faulty K4 x
expect 1 'FAIL\n' 'kv: K5 failed\n' 1 faulty K4 x
expect 1 'PASS\n' 'kv: K4 failed\n' 1 faulty K4 x
expect 1 'FAIL\n' 'kv: K4 failed\n' 0 faulty K4 x
expect 1 'FAIL\n' 'kv: K4 failed\nkv: K4 failed\n' 1 faulty K4 x
expect 1 'FAIL\n' '' 1 faulty K4 x
expect 0 '' 'kv: --x is bad\n' 2 refused 'x is bad' x
expect 1 '' 'kv: --x is bad\n' 1 refused 'x is bad' x
expect 1 '' 'kv: --x is bad\nmore\n' 2 refused 'x is bad' x
expect 1 '' 'kv: --y is bad\n' 2 refused 'x is bad' x
expect 1 '' '' 2 refused 'x is bad' x
expect 0 '' 'kv: needs at least 2 ranks\n' 2 alone
expect 1 '' 'kv: needs at least 2 ranks\n' 1 alone
expect 1 '' 'kv: other\n' 2 refused_by_device 'x is bad'
echo '{"a": 1}' >"$scratch/report"
expect 0 '' '' 0 json_holds "$scratch/report" 'r["a"] == 1'
expect 1 '' '' 0 json_holds "$scratch/report" 'r["a"] == 2'
expect 1 '' '' 0 json_holds "$scratch/none" True
printf 'summary  abc   5\nverify  abc   6\n' >"$scratch/out"
[ "$(value_of abc)$(value_of abc verify)" = 56 ] || wrong=$((wrong + 1))
failures=$wrong
finish
