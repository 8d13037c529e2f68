#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make record-frames FRAMES=DIRECTORY: RoCE frames between two machines with the kernel's Soft-RoCE, as pcap files.
. "$(dirname "$0")/vm.sh"
out=${1:?usage: record_frames.sh DIRECTORY}
mkdir -p "$out" || exit 1
"$rxe_vm/rxe-machines" run -t 300 -- bash "$top_srcdir/tests/vm/guest-frames.sh" "$(realpath "$out")"
