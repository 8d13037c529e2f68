#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's perftest, unmodified, on the software HCA: each line below is one server and one client on this
# host. Both must end well and the client must print a rate above zero (for -a: for all 23 sizes). fast_clock.c shortens what they
# do besides.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare perftest ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_bw \
    ib_atomic_lat
lib=$lib:$top_builddir/tests/softhca/libfast_clock.so

# rates TOOL FILE: how many lines of results with a rate (messages, in bandwidth tests) above zero
rates()
{
    local column=6
    [[ $1 == *_bw ]] && column=5
    awk -v c=$column '$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= c && $c > 0 { n++ } END { print n + 0 }' "$2"
}

# SETTING=VALUE... TOOL OPTIONS
run_line()
{
    local expected=1 tool
    while [[ $1 == *=* ]]; do
        local -x "$1"
        shift
    done
    tool=$1
    [[ " $* " == *" -a "* ]] && expected=23
    # -F: no message about the frequency of the CPU. It is still measured, and if that fails on a busy machine, all
    # rates are 0.
    for _ in 1 2 3 4 5; do
        together "$@" -F || return
        grep -q '^Correlation coefficient' "$work/client" || break
    done
    [ "$(rates "$tool" "$work/client")" = $expected ] || {
        fail "$*: not $expected lines with a rate above zero"
        cat "$work/client"
    }
}

while read -r -a words; do
    [ ${#words[@]} = 0 ] || run_line "${words[@]}"
done <<'LINES'
ib_write_bw -n 200 -q 16
ib_write_bw -n 20 -a
ib_write_bw -n 10 -s 8388608
ib_write_bw -n 480 -s 64 -l 16
ib_write_bw -n 500 -b -Q 10
ib_write_lat -n 500 -s 128 -I 200
ib_write_lat -n 100 -s 70001
ib_read_bw -n 100 -q 16 -o 4
ib_read_bw -n 10 -s 8388608
ib_read_lat -n 500
ib_send_bw -n 200 -q 16 -e
ib_send_bw -n 10 -s 8388608
ib_send_bw -n 200 -c UD -s 1024 -e
ib_write_bw -n 500 -c XRC
ib_read_bw -n 500 -c XRC
ib_atomic_bw -n 500 -c XRC
ib_send_lat -n 500 -e
ib_send_lat -n 500 -s 128 -I 200
ib_send_lat -n 500 -c UD -s 1024
ib_send_bw -n 500 -c UC
ib_write_bw -n 500 -c UC
ib_write_lat -n 500 -c UC
ib_send_bw -n 200 -c XRC -q 16
ib_send_lat -n 500 -c XRC -e
ib_write_lat -n 500 -c XRC
ib_atomic_bw -n 500 -A CMP_AND_SWAP -q 16
ib_atomic_lat -n 500 -A FETCH_AND_ADD
ib_atomic_lat -n 500 -A CMP_AND_SWAP
ib_send_bw -n 200 --use-srq -q 16 -e
ib_send_lat -n 500 --use-srq
ib_send_bw -n 500 -c UD -s 1024 --use-srq
SOFTHCA_LINK=roce ib_send_bw -n 500 -x 0
SOFTHCA_LINK=roce ib_write_lat -n 500 -x 1
SOFTHCA_LINK=roce ib_send_lat -n 500 -c UD -s 1024 -x 1
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 ib_read_bw -n 500 -d softhca1 -i 2
SOFTHCA_WIRE=udp ib_write_bw -n 50 -q 4 -x 0
SOFTHCA_WIRE=udp ib_read_bw -n 50 -q 4 -o 4 -x 1
SOFTHCA_WIRE=udp ib_send_bw -n 50 -c UD -s 1024 -e -x 0
SOFTHCA_WIRE=udp ib_send_bw -n 50 -c UC -x 1
SOFTHCA_WIRE=udp ib_send_bw -n 50 -c XRC -q 4 -e -x 0
SOFTHCA_WIRE=udp ib_atomic_bw -n 50 -c XRC -x 1
SOFTHCA_WIRE=udp ib_send_bw -n 50 --use-srq -q 4 -x 0
SOFTHCA_WIRE=udp ib_atomic_lat -n 100 -A CMP_AND_SWAP -x 0
LINES
finish
