#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's own tools, unmodified, on the software HCA: what they see, and ping-pongs between two
# processes. Also: nothing is left in /dev/shm, and programs without verbs are not affected.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare ibverbs-utils ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong \
    ibv_srq_pingpong ibv_xsrq_pingpong ibv_asyncwatch

expect_line '^ *softhca0' ibv_devices
expect_line 'port_lid:.*16$' ibv_devinfo -v
expect_line 'GID\[ *0\]' ibv_devinfo -v
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 expect_line 'hca_id:.softhca1' ibv_devinfo
[ "$(grep -c PORT_ACTIVE "$work/out")" = 4 ] || fail "2 HCAs of 2 ports do not make 4 active ports"
SOFTHCA_LINK=roce expect_line 'link_layer:.*Ethernet' ibv_devinfo -v
SOFTHCA_LINK=roce expect_line 'RoCE v2' ibv_devinfo -v

SOFTHCA_PROFILE=connectx-5,siw expect_line 'hca_id:.mlx5_0' ibv_devinfo -v
grep -q 'device_cap_flags:.*0xe5721c36' "$work/out" || fail "mlx5_0 has other flags than the listing"
grep -q 'hca_id:.siw0' "$work/out" && grep -q 'transport:.*iWARP' "$work/out" || fail "there is no siw0 beside mlx5_0"
SOFTHCA_PROFILE=connectx-3 expect_line 'phys_port_cnt:.*2$' ibv_devinfo

together ibv_rc_pingpong -n 500 -c
together ibv_rc_pingpong -n 500 -e
together ibv_rc_pingpong -n 100 -s 300000 -c
together ibv_rc_pingpong -n 500 -t
together ibv_rc_pingpong -n 500 -N -c
together ibv_rc_pingpong -n 500 -N -t
together ibv_uc_pingpong -n 500 -c
together ibv_uc_pingpong -n 500 -e
together ibv_ud_pingpong -n 500 -s 1024 -c
together ibv_ud_pingpong -n 500 -s 1024 -e
together ibv_srq_pingpong -n 500 -q 4
together ibv_srq_pingpong -n 500 -q 4 -e
together ibv_srq_pingpong -n 100 -s 300000 -c
together ibv_xsrq_pingpong -n 500
together ibv_xsrq_pingpong -n 500 -e
SOFTHCA_LINK=roce together ibv_srq_pingpong -n 500 -g 1
SOFTHCA_LINK=roce together ibv_rc_pingpong -n 500 -g 0
SOFTHCA_LINK=roce together ibv_ud_pingpong -n 500 -s 1024 -g 1
SOFTHCA_PROFILE=connectx-5 together ibv_rc_pingpong -n 500 -c
SOFTHCA_PROFILE=qedr together ibv_rc_pingpong -n 500 -g 1
SOFTHCA_PROFILE=rxe together ibv_ud_pingpong -n 500 -s 1024 -g 1
SOFTHCA_PROFILE=connectx-5,e810-roce together ibv_rc_pingpong -n 500 -d irdma0 -g 0
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 together ibv_rc_pingpong -n 500 -d softhca1 -i 2

# Nothing happens to this device, so its watcher waits until it is ended.
with_behind stdbuf -oL ibv_asyncwatch >"$work/out" 2>&1 &
watcher=$!
for ((tries = 0; tries < 3000; tries++)); do
    grep -q '^softhca0: async event FD' "$work/out" && break
    sleep 0.02
done
[ $tries -lt 3000 ] && sleep 0.2 && kill $watcher 2>/dev/null || fail "ibv_asyncwatch"
wait $watcher

# A bad setting: one clear line and no device.
SOFTHCA_PORTS=9 with ibv_devinfo >"$work/out" 2>&1 && fail "SOFTHCA_PORTS=9 was taken"
grep -q 'SOFTHCA_PORTS=9 is not a number from 1 to 8' "$work/out" || fail "SOFTHCA_PORTS=9: no reason"

# Programs without verbs: no output, no descriptor, and no libibverbs is loaded.
out=$(with bash -c 'ls -l /proc/$$/fd 2>/dev/null | grep -c softhca; grep -c libibverbs /proc/$$/maps' 2>&1)
[ "$out" = $'0\n0' ] || fail "bash under LD_PRELOAD is not untouched: $out"

finish
