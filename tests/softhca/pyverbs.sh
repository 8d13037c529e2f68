#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Python programs on the software HCA: our own cases (pyverbs_cases.py), then the tests that the
# authors of libibverbs wrote for their drivers, which Debian installs as documentation.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare python3 python3

python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import pyverbs.qp' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || {
    echo "the module pyverbs is missing (Debian package python3-pyverbs); skipped"
    exit 77
}
export PYTHONDONTWRITEBYTECODE=1

with "$python" "$top_srcdir/tests/softhca/pyverbs_cases.py" || fail "pyverbs_cases.py"

theirs=/usr/share/doc/rdma-core/tests
[ -e $theirs/run_tests.py ] || {
    echo "no tests of rdma-core in $theirs (Debian package python3-pyverbs): left out"
    finish
}
cp -r $theirs "$work/tests"
gzip -dq "$work"/tests/*.gz

# What may fail, and why:
#   test_import_dm     importing objects of another process is not offered
#   test_create_dm_mr  wants regions of no bytes
known='test_import_dm|test_create_dm_mr'
modules=(addr atomic cq cq_events cqex device fork mr parent_domain pd qp qpex relaxed_ordering)
for link in ib roce udp; do
    wire=shm
    [ $link = udp ] && wire=udp
    SOFTHCA_WIRE=$wire SOFTHCA_LINK=${link/udp/roce} PYTHONPATH=$work/tests:$work LD_PRELOAD=$lib timeout 300 "$python" -W ignore \
        "$work/tests/run_tests.py" --dev softhca0 -v "${modules[@]/#/tests.test_}" >"$work/out" 2>&1
    ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$work/out")
    echo "rdma-core's tests, $link: ${ran:-0} run, $(grep -c '\.\.\. skipped' "$work/out") of them skipped"
    # Fewer tests would mean that they were not found.
    [ "${ran:-0}" -ge 100 ] || fail "only ${ran:-0} tests of rdma-core ran"
    if grep -E '^(FAIL|ERROR): ' "$work/out" | grep -vE "$known"; then
        fail "rdma-core's tests, $link"
        cat "$work/out"
    fi
done

finish
