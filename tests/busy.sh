# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests with time limits: limits are for an idle machine.
# shellcheck shell=sh

# Processes wait for a CPU a fifth of the time, or more processes run than there are CPUs: limits are three times as long then.
is_busy()
{
    awk '/^some/ { gsub("avg[0-9]*=", ""); exit !($2 > 20 || $3 > 20) }' /proc/pressure/cpu 2>/dev/null ||
        awk -v n="$(nproc)" '{ exit !($1 > n) }' /proc/loadavg
}
