# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Sourced first by tests that run jobs. What the caller ignores (SIGHUP under nohup, SIGINT in the background of a script, SIGPIPE
# under many tools) the launcher and all ranks would ignore too, as they should; then tests of signals would wait for ever. No
# shell can undo that for itself.

case $(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status) in
*[!0]*)
    if [ -z "${TEST_SIGNALS_ARE_DEFAULT-}" ] && env --default-signal true 2>/dev/null; then
        TEST_SIGNALS_ARE_DEFAULT=yes exec env --default-signal "$(readlink "/proc/$$/exe")" "$0" "$@"
    fi
    ;;
esac
