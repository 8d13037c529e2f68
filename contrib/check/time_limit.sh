#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails unless contrib/run-tests.sh ends in its time and prints its count, whatever its stages do: a stage that would take longer is
# cut short, later ones do not start, and both are failures with a line of their own; and unless the output of a failed test is
# shown before the stage is over. On a tree of its own, whose tests are sleeps.
set -u
source=${top_srcdir:-$(dirname "$0")/../..}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/contrib" || exit 2
cp "$source/contrib/run-tests.sh" "$dir/contrib/" || exit 2
printf '#!/bin/sh\n' >"$dir/contrib/install-packages.sh"
cat >"$dir/configure" <<'CONFIGURE'
#!/bin/sh
printf 'one:\n\tmkdir -p tests; echo ":test-result: PASS" >tests/one.trs\n' >Makefile
printf 'check: one\n\tsleep 60\ncheck-sim: one\ncheck-sanitizer: one\n\techo "$(PASSED)" >without; rm -f tests/three.trs\ncheck-vm: one\n\tfor i in 1 2 3 4 5 6 7 8 9; do [ ! -f ../asan/ahead ] || exit 0; sleep 1; done; exit 1\n' >>Makefile
printf 'check-tsan:\n\t@echo "FAIL: two"; echo "    | its reason"; echo "    of no interest"; mkdir -p tests; echo ":test-result: FAIL" >tests/two.trs; touch tests/two.log; exit 1\n' >>Makefile
printf 'check-TESTS:\n' >>Makefile
printf 'build-sanitizer:\n\techo built >ahead\n' >>Makefile
printf 'check-sanitizer-ahead:\n\tmkdir -p tests; for t in two:PASS three:FAIL; do echo ":test-result: $${t#*:}" >tests/$${t%%:*}.trs; done; exit 1\n' >>Makefile
CONFIGURE
chmod +x "$dir/contrib/install-packages.sh" "$dir/configure"
failed=0

# expect LINES... : what the last run printed, each a pattern
expect()
{
    local pattern
    for pattern in "$@"; do
        grep -qE "$pattern" "$dir/out" || { echo "no line '$pattern' in:"; cat "$dir/out"; failed=1; }
    done
}

unset MAKEFLAGS MFLAGS MAKELEVEL
began=$SECONDS
LIMIT=3 "$dir/contrib/run-tests.sh" check sim >"$dir/out" 2>&1
[ $? -eq 1 ] || { echo "status of a run that was cut short is not 1"; failed=1; }
[ $((SECONDS - began)) -lt 30 ] || { echo "3 s took $((SECONDS - began)) s"; failed=1; }
expect '^==> FAILED: make check was cut short after [1-3] s: all stages together have 3 s \(LIMIT\)$' \
    '^==> FAILED: make check-sim did not start: all stages together have 3 s \(LIMIT\)$' '^1 passed, 2 failed, 0 skipped$'

LIMIT=60 "$dir/contrib/run-tests.sh" sim asan >"$dir/out" 2>&1 || { echo "status of a run that passed is not 0"; failed=1; }
expect '^2 passed, 0 failed, 0 skipped$'

# The tree of a stage behind the virtual machines is built beside them, and its programs run: what passed does not run again, what
# failed counts only as it does in its stage.
LIMIT=60 "$dir/contrib/run-tests.sh" sim vm asan >"$dir/out" 2>&1 || { echo "status of a run with virtual machines is not 0"; failed=1; }
expect '^==> 1 tests passed while the virtual machines ran$' '^4 passed, 0 failed, 0 skipped$'
[ "$(cat "$dir/build-tests/asan/without")" = tests/two ] || { echo "asan leaves out '$(cat "$dir/build-tests/asan/without")', not tests/two"; failed=1; }
LIMIT=60 "$dir/contrib/run-tests.sh" asan >"$dir/out" 2>&1
expect '^1 passed, 0 failed, 0 skipped$'
[ "$(cat "$dir/build-tests/asan/without")" = "" ] || { echo "asan leaves out what passed in another run"; failed=1; }

LIMIT=60 "$dir/contrib/run-tests.sh" tsan >"$dir/out" 2>&1
[ $? -eq 1 ] || { echo "status of a run with a failed test is not 1"; failed=1; }
expect '^FAIL: two$' '^    \| its reason$' '^==> FAILED: tests/two$' '^0 passed, 1 failed, 0 skipped$'
! grep -q 'of no interest' "$dir/out" || { echo "more than what a failed test said is shown"; failed=1; }

# The driver of one test: the lines come from its log, when it failed and only then.
for result in PASS FAIL; do
    printf '#!/bin/sh\necho "said by the test" >"$2"\necho ":test-result: %s" >"$4"\n' $result >"$dir/driver"
    sh "$source/contrib/build/test-driver" sh "$dir/driver" --log-file "$dir/one.log" --trs-file "$dir/one.trs" -- true >"$dir/$result"
done
[ "$(cat "$dir/FAIL")" = '    | said by the test' ] && [ ! -s "$dir/PASS" ] || { echo "test-driver does not show what a failed test said"; failed=1; }

LIMIT=soon "$dir/contrib/run-tests.sh" sim >"$dir/out" 2>&1
[ $? -eq 2 ] || { echo "LIMIT=soon is taken for a number"; failed=1; }
expect 'LIMIT=soon is not a number of seconds'
exit $failed
