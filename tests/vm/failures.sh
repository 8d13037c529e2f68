#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two machines and failures between them: loss, reordering, MTUs that differ, limits, ports down, cables out, machines
# that are stopped and killed.
. "$(dirname "$0")/vm.sh"
needs_machines
run_on_machines 900 2 2 guest-failures.sh
