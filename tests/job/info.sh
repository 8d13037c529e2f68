#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# trunkline_info prints what a job would do: its settings, ports and paths agree with those of a job; --check has status 1
# exactly if something is wrong, 2 if that is a setting.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "the program is the plain one"
info=$top_builddir/contrib/info/trunkline_info
softhca="$top_builddir/contrib/softhca/softhca run --"
unset "${!GASNET_@}" # make check has settings of its own

# run STATUS [NAME=VALUE...] -- ARGS...: over softhca, which hides this host's own devices
run()
{
    local expected=$1 settings=()
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    command="${settings[*]} trunkline_info $*"
    env SOFTHCA_ONLY=1 "${settings[@]}" $softhca "$info" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
}

has() { grep -qE -- "$1" "$scratch/out" || failed "nothing printed like '$1': $(cat "$scratch/out")"; }
has_not() { ! grep -qE -- "$1" "$scratch/out" || failed "printed: $(grep -E -- "$1" "$scratch/out")"; }

# Sections.
run 0 --
has '^ *release +trunkline '
has 'all settings have their defaults'
has 'softhca0:1 +active, InfiniBand'
has 'used: only usable device of this host'
run 0 GASNET_AM_CREDITS_PP=7 GASNET_USE_XCR=1 -- --settings
has '^ *GASNET_AM_CREDITS_PP +7  \(environment\)'
has '^ *GASNET_QP_TIMEOUT +[0-9]+  \(default of this build\)'
[ "$(grep -c '^  GASNET_' "$scratch/out")" -gt 60 ] || failed "not all settings are listed"

run 2 GASNET_AM_CREDITS_PP=many -- --settings
[ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "not one line: $(cat "$scratch/err")"
run 2 GASNET_AM_CREDITS_PP=many -- --devices

# The choice of ports agrees with a job's, with its reasons.
run 0 SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 SOFTHCA_DOWN=softhca0:1 GASNET_IBV_PORTS=softhca0 -- --devices
has 'softhca0:1 +down'
[ "$(grep -A40 'softhca0:1' "$scratch/out" | grep -c 'not used: it is down')" -eq 1 ] || failed "the port that is down"
has 'used: (only usable|one of all)'
[ "$(grep -c 'not used: it is not in GASNET_IBV_PORTS' "$scratch/out")" -eq 2 ] || failed "two ports are not named"
run 0 SOFTHCA_LINK=roce -- --devices
has 'GID [0-9]+: .*RoCE v2'

# Findings and the status.
run 0 -- --check
has '^ok +1 port would be used'
has '^[0-9]+ good, [0-9]+ to consider, 0 wrong$'
run 1 SOFTHCA_DOWN=softhca0:1 -- --check
has '^WRONG +none of the ports of this host can be used'
run 2 GASNET_AM_CREDITS_PP=many -- --check
has '^WRONG +a setting has a value that is not legal'
run 0 GASNET_USE_XCR=1 -- --check
has '^advice +GASNET_USE_XCR is not a setting of this library; did you mean GASNET_USE_XRC\?'
(failures=0 && ulimit -n 64 && run 1 -- --check && has '^WRONG +only 64 files can be open' && [ "$failures" -eq 0 ]) || failed "few open files"
run 1 GASNET_TMPDIR="$scratch/none" -- --check
has "^WRONG +$scratch/none, where the launcher makes its directory"

# Paths: the boundaries move with the settings that they follow.
GASNET_SOFTHCA=always GASNET_PACKEDLONG_LIMIT=2000 "$info" --path >"$scratch/out" 2>"$scratch/err" || failed "--path: status $?"
has '^ *put from the segment +1 to 72 +inline'
has '1024 to 2000 +copied into a registered buffer; from the segment a put, and behind it a message'
has '2001 and more +a put, and behind it a message'
GASNET_SOFTHCA=always GASNET_NUM_QPS=2 GASNET_PUT_STRIPE_SZ=64 "$info" --path 1M >"$scratch/out" 2>"$scratch/err" || failed "--path 1M: status $?"
has '^ *put from the segment +in place, by the device, in pieces of 65536 over 2 queue pairs'

# A failure to write is one line, and the status shows it.
SOFTHCA_ONLY=1 $softhca "$info" >/dev/full 2>"$scratch/err"
[ $? -eq 1 ] && [ "$(cat "$scratch/err")" = "trunkline_info: cannot write standard output: No space left on device" ] ||
    failed "a full disk: $(cat "$scratch/err")"

# Wrong options: one line, status 2.
for wrong in --frob "--build --limits" --path=0 --path=2G --path=x "--path 2G" "--path 1K 2K" word; do
    # shellcheck disable=SC2086 # words
    run 2 -- $wrong
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "not one line for $wrong: $(cat "$scratch/err")"
done
finish
