#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when a source, a test or a document refers to a rule by a number ("item 59", "K16") that tests/rules.md does not list,
# when no test names a rule that the list has, or when the list has a number twice.
# usage: rules.sh             (through make check)
set -u
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 2
rules=tests/rules.md
bad=0

# The numbers of the list, one a line: "item 59", "K16".
listed()
{
    sed -nE 's/^\| ([0-9]+) \|.*/item \1/p; s/^\| ([KSH][0-9]+) \|.*/\1/p' $rules
}

# FILE:LINE NUMBER of each reference. Items come alone, in lists and in ranges ("items 30 and 36", "items 64 to 69") and in
# names of functions (item_07_..., items_39_to_41_...). What is kv's, swarm's and sharing's is looked for where they are spoken of.
referred()
{
    grep -rnoE --include='*.c' --include='*.h' --include='*.sh' --include='*.md' --include='*.inc' \
        '\b[Ii]tems? \(?[0-9]+(( to |, | and )[0-9]+)*|\bitems?_[0-9]+(_to_[0-9]+)?' tests common conduit spawner contrib doc |
        awk -F: '$1 != "'$rules'" && $1 !~ /check\/rules.sh$/ {
            range = $3 ~ /[ _]to[ _]/
            gsub(/[^0-9]+/, " ", $3)
            count = split($3, number, " ")
            for (i = 1; i <= count; i++)
                print $1 ":" $2 " item " number[i] + 0
            for (i = number[1] + 1; range && i < number[2]; i++)
                print $1 ":" $2 " item " i
        }'
    grep -rnoE --include='*.c' --include='*.h' --include='*.sh' --include='*.md' '\b[KSH][0-9]{1,2}\b' \
        tests/workloads doc/workloads.md | awk -F: '{ print $1 ":" $2 " " $3 }'
}

list=$(mktemp) || exit 2
trap 'rm -f "$list" "$list.referred"' EXIT
listed | sort >"$list"
while read -r number; do
    echo "$rules lists $number twice"
    bad=1
done < <(uniq -d "$list")
referred >"$list.referred"
count=$(wc -l <"$list.referred")
while read -r place number; do
    echo "$place: $rules has no $number"
    bad=1
done < <(awk 'NR == FNR { listed[$0]; next } { number = $0; sub(/^[^ ]* /, "", number) } !(number in listed)' "$list" "$list.referred")
# A rule that loses its last test is a promise that nothing keeps.
while read -r number; do
    echo "$rules: no test names $number"
    bad=1
done < <(sed -n 's/^tests[^ ]* //p' "$list.referred" | sort -u | comm -23 "$list" -)
# Far fewer than there are: the search is broken, and nothing was checked.
[ $count -ge 200 ] || { echo "only $count references found"; bad=1; }
exit $bad
