#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when the settings and the options in the README are not what the launcher prints, or when a path that the README
# names does not exist. usage: readme.sh            (through make check)
#                              readme.sh --update   (writes the launcher's text into the README; GASNETRUN names the launcher)
set -u
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
launcher=${GASNETRUN:?the launcher: run through make check, or set it}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# The README's parts between a line that ends in "(from gasnetrun_ibv OPTION)" and the next line at the left margin
rewrite()
{
    for option in help settings; do
        "$launcher" --$option | sed 's/^\(.\)/    \1/' >"$work/$option" || exit 2
    done
    awk -v work="$work" '
        inside && /^[^ ]/ { inside = 0; print "" }
        !inside { print }
        match($0, /\(from gasnetrun_ibv --[a-z]+\)$/) {
            inside = 1
            file = work "/" substr($0, RSTART + 22, RLENGTH - 23)
            print ""
            while ((getline line < file) > 0)
                print line
        }' "$top/README"
}

rewrite >"$work/README"
if [ "${1:-}" = --update ]; then
    cp "$work/README" "$top/README"
    exit
fi
bad=0
if ! diff "$top/README" "$work/README" >"$work/diff"; then
    head -20 "$work/diff"
    echo "the README does not say what the launcher says: run contrib/check/readme.sh --update"
    bad=1
fi
for path in $(grep -oE '\b(conduit|spawner|contrib|tests)/[A-Za-z0-9_./-]+' "$top/README" | sed 's/[.,/]*$//' | sort -u); do
    [ -e "$top/$path" ] || [ -e "${top_builddir:-$top}/$path" ] || { echo "the README names $path, which is not there"; bad=1; }
done
exit $bad
