#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when the table of doc/devices.md is not what the library does: a job of two times two ranks runs on each profile of softhca
# (contrib/softhca/support/profiles.def), and says what it chose at its start, or why it can't run there. Fails too when a line
# of the list behind the table names no test, or one that is not there.
# usage: devices.sh             (through make check)
#        devices.sh --update    writes the table
set -u
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
built=${top_builddir:-$top}
launcher=${GASNETRUN:?the launcher: run through make check, or set it}
info=$built/contrib/info/trunkline_info
page=$top/doc/devices.md
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
[ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || { echo "the program is the plain one"; exit 77; }
unset "${!GASNET_@}" "${!SOFTHCA_@}"

profiles()
{
    grep -oE '\.name = "[^"]+"' "$top/contrib/softhca/support/profiles.def" | cut -d'"' -f2 | grep -v '^softhca$'
}

# row NAME: with the features that a user must ask for; XRC is for ranks that share memory
row()
{
    SOFTHCA_PROFILE=$1 SOFTHCA_ONLY=1 GASNET_SOFTHCA=always GASNET_SUPERNODE_MAXSIZE=2 GASNET_USE_SRQ=1 GASNET_USE_XRC=1 GASNET_USE_ODP=1 \
        timeout 60 "$launcher" -n 4 "$info" --device-job >"$work/$1.out" 2>"$work/$1.err" </dev/null
    if grep -q '^| ' "$work/$1.out"; then
        echo "| $1 $(grep '^| ' "$work/$1.out")"
    else
        echo "| $1 | not used: $(sed -n 's/.*no usable RDMA port: [^ ]* //p' "$work/$1.err" | head -1) | | | | | | | |"
    fi
}

table()
{
    echo "| Device | Link | Connected | Inline | List | Receives | XRC | Atomics | Memory |"
    echo "|---|---|---|---|---|---|---|---|---|"
    for name in $(profiles); do
        row "$name"
    done
}

# The page with the table as it is.
fresh()
{
    table >"$work/table"
    awk -v table="$work/table" '
        /^<!-- end of table -->$/ { inside = 0 }
        !inside { print }
        /^<!-- table: from contrib\/check\/devices.sh -->$/ {
            inside = 1
            print ""
            while ((getline line < table) > 0)
                print line
            print ""
        }' "$page"
}

# Each "(FILE: FUNCTION)" in the list; "none" for an entry without one.
tests_named()
{
    awk '/^Other intended behaviour/ { on = 1 } on && /^If your device/ { exit } on' "$page" |
        awk 'function flush() {
                if (text != "" && !match(text, /\([^ ()]+: [a-z_]+\)/)) print "none:" text
                while (match(text, /\([^ ()]+: [a-z_]+\)/)) {
                    print substr(text, RSTART + 1, RLENGTH - 2)
                    text = substr(text, RSTART + RLENGTH)
                }
                text = ""
            }
            /^- / { flush() } /^(- |  )/ { text = text " " $0 } END { flush() }'
}

check_tests()
{
    local file function found=0
    while IFS=: read -r file function; do
        function=${function# }
        if [ "$file" = none ]; then
            echo "doc/devices.md names no test: $function"
        elif ! grep -qsE "^(static void )?$function\(" "$top/$file"; then
            echo "doc/devices.md: $file has no $function()"
        else
            found=$((found + 1))
            continue
        fi
        return 1
    done < <(tests_named)
    [ $found -ge 5 ] || { echo "doc/devices.md: $found tests are named"; return 1; }
}

fresh >"$work/page"
[ "$(grep -c '^| [a-z0-9-]* | [A-Z]' "$work/page")" -ge 12 ] || { echo "jobs do not run on the profiles: $(head -3 "$work"/*.err)"; exit 1; }
if [ "${1:-}" = --update ]; then
    cp "$work/page" "$page"
    exit
fi
check_tests || exit 1
diff "$page" "$work/page" && exit 0
echo "doc/devices.md does not say what the library does: run contrib/check/devices.sh --update"
exit 1
