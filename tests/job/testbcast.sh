#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# testbcast verifies every payload of its broadcasts: by trees, flat and along a chain, to all ranks and to subsets, from each
# root.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
udp="SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1"

SETTINGS=$udp good 5 "$jobs/testbcast-seq" -n 2,4 -s 8:262144 -i 4 -k kept,rotate,subset
rows=$(awk '$1 ~ /^(binomial|flat|chain)$/ && $5 > 0' "$scratch/out" | wc -l)
[ "$rows" -eq 108 ] || failed "testbcast printed $rows rows, not 108"
finish
