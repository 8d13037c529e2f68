#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when files call each other in a cycle, or when a file calls or includes one of a higher floor. What is called, and
# which variables are used, is read from the objects of the build (nm), so that no declaration can hide it; the plan is
# contrib/check/calls.txt.
# usage: calls.sh, with top_srcdir and top_builddir in the environment; calls.sh --edges lists the calls
set -u
: "${top_srcdir:=$(dirname "$0")/../..}" "${top_builddir:=$top_srcdir}"
plan=$top_srcdir/contrib/check/calls.txt
bad=0

# symbols DIRECTORY VARIANT...: a line for each symbol of each object that is compiled in one of these ways (contrib/build/rules.mk): file,
# D (defined) or U, name
symbols()
{
    directory=$1
    shift
    for variant; do
        (cd "$top_builddir/obj/$variant" 2>/dev/null && find . -name "$(echo "$directory/" | tr / -)*.o" -exec "${NM:-nm}" -A {} +)
    done | sed -n 's#^\./\([^:/]*\)\.o:[0-9a-f ]* \([A-Z]\) \(.*\)#\1 \2 \3#p' |
        awk '{ gsub("-", "/", $1) } $2 ~ /[UTDBRGSVWC]/ { print $1 ".c", $2 == "U" ? "U" : "D", $3 }'
}

# included DIRECTORY: a line "file header #include" for each #include that names a room of it
included()
{
    (cd "$top_srcdir" && find "$1" -name '*.[ch]' -exec grep -H '^# *include  *"[a-z_]*/' {} +) |
        sed -n "s,^\([^:]*\):# *include *\"\($1/\)\{0\,1\}\([^\"]*\)\".*,\1 $1/\3 #include,p"
}

# judge TREE: calls upward, and circles; reads a line "file file symbol" for each call
judge()
{
    awk -v tree="$1" -v plan="$plan" '
        function room_of(file) {
            sub("^" tree "/", "", file)
            sub("/[^/]*$", "", file)
            return file
        }
        function visit(v, i, w) {
            index_of[v] = low[v] = ++counter
            stack[++top] = v
            on[v] = 1
            for (i = 1; i <= outs[v]; i++) {
                w = out[v, i]
                if (!(w in index_of)) {
                    visit(w)
                    if (low[w] < low[v]) low[v] = low[w]
                } else if (on[w] && index_of[w] < low[v])
                    low[v] = index_of[w]
            }
            if (low[v] == index_of[v]) {
                members = ""
                count = 0
                do {
                    w = stack[top--]
                    on[w] = 0
                    members = members " " w
                    count++
                } while (w != v)
                if (count > 1) {
                    print "these files call each other in a circle:" members
                    failed = 1
                }
            }
        }
        BEGIN {
            while ((getline line < plan) > 0) {
                fields = split(line, field, " ")
                if (field[1] == "floor" && field[2] == tree) {
                    floors++
                    for (i = 3; i <= fields; i++)
                        depth[field[i]] = floors
                }
                if (field[1] == "libc" && field[2] == tree)
                    for (i = 3; i <= fields; i++)
                        libc[field[i]] = 1
                if (field[1] == "allow") {
                    allowed[field[2], field[3]] = 1
                    reason = field[4]
                    if (reason == "") {
                        print plan ": no reason for " field[2] " " field[3]
                        failed = 1
                    }
                }
            }
        }
        $3 in libc { next }
        {
            from = room_of($1)
            to = room_of($2)
            # What stands beside the floors (commands, fuzzers) may include any of them.
            if ($3 == "#include" && !(from in depth && to in depth))
                next
            if (floors && !(from in depth)) {
                if (!reported[from]++) print "room " from " of " tree " is not in " plan
                failed = 1
            }
            if (floors && from != to && depth[to] <= depth[from] && !(($1, $2) in allowed)) {
                print $1 ($3 == "#include" ? " includes " : " calls " $3 " of ") $2 ": from " from " up or sideways to " to
                failed = 1
            }
            if (($1, $2) in allowed) {
                used[$1, $2] = 1
                next
            }
            if ($3 != "#include" && !seen[$1, $2]++) {
                out[$1, ++outs[$1]] = $2
                files[$1] = files[$2] = 1
                arrows++
            }
        }
        END {
            for (pair in allowed) {
                split(pair, ends, SUBSEP)
                if (index(ends[1], tree "/") == 1 && !(pair in used)) {
                    print plan ": " ends[1] " no longer calls " ends[2] ": take the line out"
                    failed = 1
                }
            }
            for (v in files)
                if (!(v in index_of)) visit(v)
            if (!failed) print tree ": " arrows + 0 " arrows among files, no circle"
            exit failed
        }'
}

work=$(mktemp -d "${TMPDIR:-/tmp}/calls.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
grep '^tree ' "$plan" >"$work/trees" || { echo "no plan in $plan"; exit 1; }
while read -r _ tree variants; do
    # shellcheck disable=SC2086 # a list
    symbols "$tree" $variants >"$work/symbols"
    [ -s "$work/symbols" ] || { echo "$tree: no objects of $variants; build first"; bad=1; continue; }
    awk '$2 == "D" { home[$3] = $1 } $2 == "U" { use[++n] = $1 " " $3 }
        END { for (i = 1; i <= n; i++) { split(use[i], u, " "); if (u[2] in home && home[u[2]] != u[1]) print u[1], home[u[2]], u[2] } }' \
        "$work/symbols" | sort >"$work/edges"
    included "$tree" >>"$work/edges"
    if [ "${1:-}" = --edges ]; then
        cat "$work/edges"
    else
        judge "$tree" <"$work/edges" || bad=1
    fi
done <"$work/trees"
[ "$(grep -c '^allow ' "$plan")" -le 5 ] || { echo "$plan: more than 5 exceptions"; bad=1; }
exit $bad
