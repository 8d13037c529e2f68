#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs on three machines, each with the kernel's RDMA stack: Soft-RoCE by address handles and by librdmacm, iWARP by librdmacm;
# started over ssh by our launcher, and by Open MPI's; messages, puts and gets, collectives, kv. Nothing is sent twice.
. "$(dirname "$0")/vm.sh"
needs_machines
SIW_MODULE=$("$rxe_vm/get-siw.sh") || SIW_MODULE=
export SIW_MODULE
# A minute and a half on an idle machine.
run_on_machines 900 3 1 guest-machines.sh
