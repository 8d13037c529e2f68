#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Is the VM what the other tests here take it for? Two rails of the kernel's Soft-RoCE, found and used
# by Debian's own programs.
. "$(dirname "$0")/vm.sh"
run_in_vm 60 2 guest-devices.sh
