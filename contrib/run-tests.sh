#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests and ends with one line: N passed, N failed, N skipped, counted from what make check wrote down.
# usage: contrib/run-tests.sh [check] [sim] [asan] [tsan] [vm]      (default: all of them)
#   check  make check in an ordinary build
#   sim    make check-sim: the multicast switch in the simulator, thousands of broadcasts a scenario
#   asan   the unit, job and softhca tests in a debug build with traces, AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan   the tests of several threads in a build with ThreadSanitizer
#   vm     make check-vm: the same over the kernel's Soft-RoCE in a virtual machine
# Tests that failed beside the others, if they are few, run once more with the machine to themselves, to find out whether load is what
# they need in order to fail. They are failures all the same.
# Each stage builds in its own folder below ./build-tests (BUILD=directory for another place) and has a time limit.
# Status 0: tests ran and none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
base=${BUILD:-$top/build-tests}
# Tests wait as much as they compute, so two at once for each CPU.
jobs=$(($(nproc) * 2))
passed=0 failed=0 skipped=0
again_max=3

say()
{
    echo "==> $*"
}

# A stage that did not get as far as running tests is a failed test, never a silent gap.
broken()
{
    echo "==> FAILED: $*"
    failed=$((failed + 1))
}

prepare()
{
    contrib/install-packages.sh build test "$@" || return 1
    [ -x configure ] && return
    ./autogen.sh >autogen.log 2>&1 || { cat autogen.log; return 1; }
    rm -f autogen.log
}

# make_tree NAME [configure options]: configures $base/NAME and leaves us in it.
make_tree()
{
    local name=$1
    shift
    mkdir -p "$base/$name" && cd "$base/$name" || return 1
    [ -f Makefile ] || "$top/configure" --quiet "$@" >configure.log 2>&1 || { tail -5 configure.log; return 1; }
}

# Adds the results written since $1 (a file) to the totals and shows what failed or was skipped.
count()
{
    local trs result
    while IFS= read -r trs; do
        while IFS= read -r result; do
            case $result in
            PASS | XFAIL) passed=$((passed + 1)) ;;
            SKIP) skipped=$((skipped + 1)) ;;
            *) failed=$((failed + 1)) ;;
            esac
        done < <(sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p' "$trs")
        show "$trs"
    done < <(find tests contrib -name '*.trs' -newer "$1" 2>/dev/null | sort)
}

show()
{
    local log=${1%.trs}.log
    if grep -qE '^:test-result: *(FAIL|ERROR|XPASS)' "$1"; then
        say "FAILED: ${log%.log}"
        tail -80 "$log"
    elif grep -qE '^:test-result: *SKIP' "$1"; then
        say "skipped: ${log%.log}: $(grep -v '^SKIP' "$log" | head -1)"
    fi
}

# failed_since FILE: the logs of the tests that failed since then
failed_since()
{
    find tests contrib -name '*.trs' -newer "$1" -exec grep -lE '^:test-result: *(FAIL|ERROR)' {} + 2>/dev/null | sed 's/\.trs$/.log/' | sort
}

# second_try LIMIT FILE: what failed since then, alone; says whether it passes so
second_try()
{
    local limit=$1 before=$2 logs log
    mapfile -t logs < <(failed_since "$before")
    [ ${#logs[@]} -gt 0 ] && [ ${#logs[@]} -le $again_max ] || return 0
    timeout -k 10 "$limit" make -k --no-print-directory check-TESTS check_PROGRAMS= check_LTLIBRARIES= check_SCRIPTS= \
        TEST_LOGS="${logs[*]}" >again.log 2>&1 </dev/null
    for log in "${logs[@]}"; do
        if grep -qE '^:test-result: *PASS' "${log%.log}.trs"; then
            say "${log%.log} passed when it ran alone: UNSTABLE"
        else
            say "${log%.log} failed alone too"
        fi
    done
}

# run_make LIMIT target...: builds what the target's tests need and runs them, all within so many seconds; counts the tests
run_make()
{
    local limit=$1 status before
    shift
    before=$(mktemp)
    local had=$((passed + failed + skipped))
    timeout -k 10 "$limit" make -j"$jobs" -k --no-print-directory "$@" >test.log 2>&1 </dev/null
    status=$?
    count "$before"
    [ $status -eq 124 ] || [ $status -eq 137 ] || second_try "$limit" "$before"
    rm -f "$before"
    if [ $status -eq 124 ] || [ $status -eq 137 ]; then
        broken "make $* took longer than $limit s"
    elif [ $((passed + failed + skipped)) -eq $had ]; then
        tail -30 test.log
        broken "make $* ran no test"
    elif [ $status -ne 0 ] && [ $failed -eq 0 ]; then
        tail -30 test.log
        broken "make $* ended with status $status"
    fi
}

# stage NAME "configure options" LIMIT target: one tree, one run
stage()
{
    # shellcheck disable=SC2086 # a list
    if make_tree "$1" $2; then
        run_make "$3" "$4"
    else
        broken "the tree for $4 does not build"
    fi
    cd "$top" || exit 1
}

run_stage()
{
    local began=$SECONDS
    say "$1"
    case $1 in
    check) stage check --enable-werror 1800 check ;;
    sim) stage check --enable-werror 600 check-sim ;;
    asan) stage asan "--enable-debug --enable-trace --enable-sanitizer=address,undefined" 1800 check-sanitizer ;;
    tsan) stage tsan --enable-sanitizer=thread 900 check-tsan ;;
    vm) stage check --enable-werror 2400 check-vm ;;
    esac
    say "$1 took $((SECONDS - began)) s"
}

[ $# -gt 0 ] || set -- check sim asan tsan vm
groups=
for wanted in "$@"; do
    case $wanted in
    asan | tsan) groups="$groups sanitizer" ;;
    vm) groups="$groups vm" ;;
    check | sim) ;;
    *)
        echo "run-tests.sh: unknown stage '$wanted'; there are check, sim, asan, tsan and vm" >&2
        exit 2
        ;;
    esac
done
# shellcheck disable=SC2086 # a list
if prepare $groups; then
    for wanted in "$@"; do
        run_stage "$wanted"
    done
else
    broken "packages or autogen.sh"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
