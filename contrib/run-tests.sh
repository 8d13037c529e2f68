#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests and ends with one line: N passed, N failed, N skipped, counted from what make check wrote down.
# usage: contrib/run-tests.sh [check] [sim] [vm] [asan] [tsan]      (default: all of them)
#   check  make check in an ordinary build
#   sim    make check-sim: the multicast switch in the simulator, thousands of broadcasts a scenario
#   vm     make check-vm: the same over the kernel's Soft-RoCE in a virtual machine; meanwhile the trees of later stages are built
#   asan   the unit, job and softhca tests in a debug build with traces, AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan   the tests of several threads in a build with ThreadSanitizer
# Tests that failed beside the others, if they are few, run once more with the machine to themselves, to find out whether load is what
# they need in order to fail. They are failures all the same.
# While the virtual machines run, tests of the later stages that are one program run too; what does not pass there runs again in its
# stage.
# Each stage builds in its own folder below ./build-tests (BUILD=directory for another place) and has a time limit; all of them
# together have one of 80 minutes (LIMIT=seconds), at whose end the stage that runs is cut short, those behind it do not start, and
# each of them is a failure.
# Status 0: tests ran and none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
base=${BUILD:-$top/build-tests}
# Tests wait as much as they compute, so two at once for each CPU.
jobs=$(($(nproc) * 2))
passed=0 failed=0 skipped=0
again_max=3
# Three times what they take on an idle machine of two CPUs: one that others slow down gets to its end.
whole=${LIMIT:-4800}
case $whole in
'' | *[!0-9]*)
    echo "run-tests.sh: LIMIT=$whole is not a number of seconds" >&2
    exit 2
    ;;
esac

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

# at_most LIMIT: so many seconds, or what is left of the whole
at_most()
{
    local left=$((whole - SECONDS))
    [ "$left" -gt 0 ] || left=0
    echo $((left < $1 ? left : $1))
}

# within LIMIT FILE command...: its output goes to FILE, what it says of failed tests is shown at once; status 124 or 137: it was
# ended after so many seconds
within()
{
    local limit=$1 file=$2 status
    shift 2
    timeout -k 10 "$limit" "$@" 2>&1 </dev/null | tee "$file" | grep --line-buffered -E '^(FAIL|ERROR|XPASS): |^    \| '
    status=${PIPESTATUS[0]}
    return $status
}

# too_long WHAT LIMIT: the line for what within() ended
too_long()
{
    if [ $SECONDS -ge "$whole" ]; then
        broken "$1 was cut short after $2 s: all stages together have $whole s (LIMIT)"
    else
        broken "$1 took longer than $2 s"
    fi
}

prepare()
{
    contrib/install-packages.sh build test browser "$@" || return 1
    [ -x configure ] && return
    ./autogen.sh >autogen.log 2>&1 || { cat autogen.log; return 1; }
    rm -f autogen.log
}

# make_tree NAME: configures $base/NAME and leaves us in it. Of the debug information tests need no more than lines: without the rest
# compiling takes a sixth less. Programs of tests are compiled with -O1 (tests/programs.mk). ThreadSanitizer is no less strict with
# -O1, for which the compiler needs half of the time.
make_tree()
{
    local options=()
    unset TEST_CFLAGS
    case $1 in
    check)
        export TEST_CFLAGS=-O1
        options=(--enable-werror --enable-debug-twin --enable-trace-twin --enable-mcswitch CFLAGS="-g1 -O2")
        ;;
    asan) options=(--enable-debug --enable-trace "--enable-sanitizer=address,undefined" CFLAGS=-g1) ;;
    tsan) options=(--enable-sanitizer=thread CFLAGS="-g1 -O1") ;;
    esac
    mkdir -p "$base/$1" && cd "$base/$1" || return 1
    [ -f Makefile ] || within 300 configure.log "$top/configure" --quiet "${options[@]}" || { tail -5 configure.log; return 1; }
}

# The target's name of a stage that has its own tree
declare -A kind=([asan]=sanitizer [tsan]=tsan)

# build_ahead STAGE...: builds their trees in the background, then runs those of their tests that are one program. Machines that are
# emulated wait for each other, so that a third of the CPUs' time is left; no test may be slower for it. What goes wrong here is tried
# again, and told, by the stage itself.
build_ahead()
{
    local stage
    set -m # a process group of its own, which can be ended as a whole
    {
        for stage in "$@"; do
            [ -z "${kind[$stage]-}" ] || ahead "$stage" "build-${kind[$stage]}"
        done
        for stage in "$@"; do
            [ -z "${kind[$stage]-}" ] || ahead "$stage" "check-${kind[$stage]}-ahead" began
        done
    } >/dev/null 2>&1 </dev/null &
    group=$!
    trap 'kill -- "-$group" 2>/dev/null' EXIT
    set +m
}

# ahead NAME TARGET [FILE]: the file is there from the beginning of tests on.
ahead()
(
    parallel=$(nproc)
    make_tree "$1" || exit
    [ -z "${3-}" ] || { : >"$3" && parallel=$jobs; }
    nice -n 19 timeout --foreground -k 10 "$(at_most 1500)" make -j"$parallel" -k --no-print-directory "$2" >ahead.log
)

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

# Sets passed_ahead to the tests of this tree that build_ahead() has run and that passed, and counts them. All others run in the stage:
# beside machines that are emulated a test may fail for want of a CPU.
count_ahead()
{
    passed_ahead=
    [ -f began ] || return 0
    passed_ahead=$(find tests contrib -name '*.trs' -newer began -exec grep -lE '^:test-result: *PASS' {} + 2>/dev/null | sed 's/\.trs$//' | paste -s -d ' ')
    rm began
    passed=$((passed + $(wc -w <<<"$passed_ahead")))
    say "$(wc -w <<<"$passed_ahead") tests passed while the virtual machines ran"
}

# The tests since $1 (a file) that took longest, beside the others: from the birth of the log to the result.
longest()
{
    local trs born
    find tests contrib -name '*.trs' -newer "$1" 2>/dev/null | while IFS= read -r trs; do
        born=$(stat -c %W "${trs%.trs}.log" 2>/dev/null) && [ "$born" -gt 0 ] &&
            echo "$(($(stat -c %Y "$trs") - born)) s ${trs%.trs}"
    done | sort -rn | head -8 | paste -s -d ',' | sed 's/,/, /g; s/^./==> longest: &/'
}

show()
{
    local log=${1%.trs}.log
    if grep -qE '^:test-result: *(FAIL|ERROR|XPASS)' "$1"; then
        say "FAILED: ${log%.log}"
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
    local limit before=$2 logs log
    limit=$(at_most "$1")
    mapfile -t logs < <(failed_since "$before")
    [ "$limit" -gt 0 ] && [ ${#logs[@]} -gt 0 ] && [ ${#logs[@]} -le $again_max ] || return 0
    within "$limit" again.log make -k --no-print-directory check-TESTS \
        TEST_LOGS="${logs[*]}"
    for log in "${logs[@]}"; do
        if grep -qsE '^:test-result: *PASS' "${log%.log}.trs"; then
            say "${log%.log} passed when it ran alone: UNSTABLE"
        else
            say "${log%.log} failed alone too"
        fi
    done
}

# run_make LIMIT TARGET [NAME=VALUE]: builds what the target's tests need and runs them, all within so many seconds; counts the tests
run_make()
{
    local limit target=$2 status before
    limit=$(at_most "$1")
    [ "$limit" -gt 0 ] || limit=1 # 0 would be no limit
    shift
    before=$(mktemp)
    local had=$((passed + failed + skipped))
    within "$limit" test.log make -j"$jobs" -k --no-print-directory "$@"
    status=$?
    count "$before"
    longest "$before"
    [ $status -eq 124 ] || [ $status -eq 137 ] || second_try 600 "$before"
    rm -f "$before"
    if [ $status -eq 124 ] || [ $status -eq 137 ]; then
        too_long "make $target" "$limit"
    elif [ $((passed + failed + skipped)) -eq $had ]; then
        tail -30 test.log
        broken "make $target ran no test"
    elif [ $status -ne 0 ] && [ $failed -eq 0 ]; then
        tail -30 test.log
        broken "make $target ended with status $status"
    fi
}

# stage NAME LIMIT target: one tree, one run
stage()
{
    local name=$1 limit=$2 target=$3
    if [ "$(at_most "$limit")" -eq 0 ]; then
        broken "make $target did not start: all stages together have $whole s (LIMIT)"
    elif make_tree "$name"; then
        count_ahead
        run_make "$limit" "$target" ${passed_ahead:+"PASSED=$passed_ahead"}
    else
        broken "the tree for $target does not build"
    fi
    cd "$top" || exit 1
}

run_stage()
{
    local began=$SECONDS
    say "$1"
    case $1 in
    check) stage check 2700 check ;;
    sim) stage check 600 check-sim ;;
    vm) stage check 2400 check-vm ;;
    asan) stage asan 2400 check-sanitizer ;;
    tsan) stage tsan 1500 check-tsan ;;
    esac
    say "$1 took $((SECONDS - began)) s"
}

[ $# -gt 0 ] || set -- check sim vm asan tsan
rm -f "$base"/*/began # of a run that was killed
groups=
for wanted in "$@"; do
    case $wanted in
    asan | tsan) groups="$groups sanitizer" ;;
    vm) groups="$groups vm" ;;
    check | sim) ;;
    *)
        echo "run-tests.sh: unknown stage '$wanted'; there are check, sim, vm, asan and tsan" >&2
        exit 2
        ;;
    esac
done
group=
# shellcheck disable=SC2086 # a list
if prepare $groups; then
    while [ $# -gt 0 ]; do
        wanted=$1
        shift
        case $wanted,$group in
        vm,) build_ahead "$@" ;;
        sim,) case " $* " in *' vm '*) build_ahead "$@" ;; esac ;; # it uses one CPU, and no clock
        vm,*) ;;
        *) wait ;; # for a tree that is built ahead
        esac
        run_stage "$wanted"
    done
else
    broken "packages or autogen.sh"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
