#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzzer with clang and runs each target for a while, all at the same time. Inputs that make one fail are kept in the
# build directory, contrib/softhca/fuzz/found.
# usage: fuzz.sh SECONDS    with top_srcdir and top_builddir in the environment, after libcore.la is built
# Status 0: nothing found; 1: something; 77: there is no clang with libFuzzer.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
seconds=${1:?usage: fuzz.sh SECONDS}
source=$top_srcdir/contrib/softhca
dir=$top_builddir/contrib/softhca/fuzz
targets="settings registry fault control bundle"

mkdir -p "$dir/found" || exit 1
echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' >"$dir/probe.c"
if ! ${FUZZ_CC:-clang} -fsanitize=fuzzer,address "$dir/probe.c" -o "$dir/probe" 2>"$dir/probe.log"; then
    echo "no ${FUZZ_CC:-clang} with libFuzzer (Debian packages clang, libclang-rt-dev); skipped: $(head -1 "$dir/probe.log")"
    exit 77
fi

# The parsers are instrumented; of the archive only what they need besides is taken.
instrumented="$source/fuzz/targets.c $source/fuzz/libfuzzer.c $source/support/softhca_settings.c $source/support/registry_name.c $source/fault/fault_parse.c
    $source/wire/control.c $source/support/bundle.c $source/support/bundle_fit.c $source/support/gid_list.c $source/replace/real.c"
# shellcheck disable=SC2046,SC2086
${FUZZ_CC:-clang} -g -O1 -std=gnu11 -D_GNU_SOURCE -fsanitize=fuzzer,address -I"$top_builddir" -I"$top_srcdir" -I"$source" \
    $(pkg-config --cflags libibverbs) $instrumented "$top_builddir/contrib/softhca/libcore.a" \
    -o "$dir/fuzzer" -pthread -ldl || exit 1

fuzz()
{
    local work=$dir/corpus/$1
    mkdir -p "$work" || return 1
    # Leaks: the device stays open on purpose. A single input that takes 30 s is a failure;
    # less and a machine at its limits fails too, which stops a process for seconds.
    ASAN_OPTIONS=detect_leaks=0 FUZZ_TARGET=$1 "$dir/fuzzer" -max_total_time="$seconds" -timeout=30 -max_len=4200 \
        -print_final_stats=1 -artifact_prefix="$dir/found/$1-" "$work" "$top_srcdir/tests/softhca/corpus/$1" \
        >"$dir/$1.log" 2>&1
}

pids=
for target in $targets; do
    fuzz "$target" &
    pids="$pids $target:$!"
done
failed=0
for entry in $pids; do
    if wait "${entry#*:}"; then
        echo "${entry%:*}: $(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/${entry%:*}.log") inputs, nothing found"
    else
        failed=1
        echo "${entry%:*}: failed; the input is in $dir/found"
        tail -30 "$dir/${entry%:*}.log"
    fi
done
exit $failed
