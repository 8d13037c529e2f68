#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# softhca's packets between machines: to the kernel's Soft-RoCE, and between two machines that have no RDMA ports.
. "$(dirname "$0")/vm.sh"
needs_machines
for tool in ibv_rc_pingpong:ibverbs-utils ib_write_bw:perftest ss:iproute2; do
    command -v "${tool%:*}" >/dev/null || skip "no ${tool%:*} (Debian package ${tool#*:})"
done
# A minute on an idle machine.
run_on_machines 900 2 1 guest-softhca.sh
