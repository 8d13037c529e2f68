#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzzer of contrib/roce with clang and runs each target for a while, all at the same time. Inputs that make one fail are
# kept in the build directory, contrib/roce/fuzz/found.
# usage: fuzz.sh SECONDS    with top_srcdir and top_builddir in the environment
# Status 0: nothing found; 1: something; 77: there is no clang with libFuzzer.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
seconds=${1:?usage: fuzz.sh SECONDS}
source=$top_srcdir/contrib/roce
dir=$top_builddir/contrib/roce/fuzz

mkdir -p "$dir/found" || exit 1
if ! ${FUZZ_CC:-clang} -g -O1 -std=gnu11 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$top_builddir" -I"$source" -I"$source/../softhca" "$source"/packet/*.c "$source"/endpoint/*.c "$source/fuzz/targets.c" "$source/fuzz/endpoint.c" \
    "$top_srcdir/contrib/softhca/fuzz/libfuzzer.c" -o "$dir/fuzzer" -pthread 2>"$dir/build.log"; then
    echo "no ${FUZZ_CC:-clang} with libFuzzer (Debian packages clang, libclang-rt-dev); skipped: $(head -1 "$dir/build.log")"
    exit 77
fi

fuzz()
{
    local work=$dir/corpus/$1
    mkdir -p "$work" || return 1
    FUZZ_TARGET=$1 "$dir/fuzzer" -max_total_time="$seconds" -timeout=5 -max_len=4200 -print_final_stats=1 \
        -artifact_prefix="$dir/found/$1-" "$work" "$top_srcdir/tests/roce/corpus/$1" >"$dir/$1.log" 2>&1
}

pids=
for target in frame pcap endpoint; do
    fuzz $target &
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
