#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside a VM: trunkline_info --bundle on the kernel's device (Soft-RoCE, or siw), whose test passes; softhca reads it
# back and reports the same values, except for its own addresses, tables and counters, and for capabilities beyond 32 bits
# (device_cap_flags_ex): newer kernels have flushes and atomic writes there, which softhca does not do.
set -u
: "${top_builddir:?}"
info=$top_builddir/contrib/info/trunkline_info
softhca=$top_builddir/contrib/softhca/softhca
out=/run/bundle

fail()
{
    echo "FAIL: $*"
    exit 1
}

# The values in a profile. Lists are cut after 30 entries: softhca has no longer lists.
taken()
{
    awk '/^\[/ { on = $1 == "[sizes" || $1 == "[device" || ($1 == "[port" && $2 ~ /:1\]$/) } on' "$1" |
        grep -E '^(\[|vendor|hw_ver|fw_ver|node_type|transport_type|max_(mr_size|qp|qp_wr|cq|cqe|mr|pd|qp_rd_atom|qp_init_rd_atom|srq|srq_wr|mtu|msg_sz)|atomic_cap|device_cap_flags |phys_port_cnt|active_|link_layer|local_ca|type |inline |cq |resize_cq)'
}

"$info" --bundle $out.kernel --seconds 60 || fail "status $?: $(grep -A30 '^\[test' $out.kernel)"
grep -A30 '^\[test' $out.kernel | grep -E '^\[test|^result'
GASNET_SOFTHCA=auto "$softhca" run --only --profile $out.kernel "$info" --bundle $out.softhca --seconds 60 ||
    fail "softhca's: status $?: $(grep -A30 '^\[test' $out.softhca)"
diff <(taken $out.kernel) <(taken $out.softhca) || fail "softhca says something else"
# For the record, and to look at from outside.
sed -n '/^\[device/,/^\[findings/p' $out.kernel
