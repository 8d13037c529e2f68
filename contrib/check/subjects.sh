#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when the subject of a commit is not `room: what changes` in at most 72 characters. A room is the end of a path that the tree
# has or had, with or without the ending of a file (transport/verbs, verbs, README, documents.sh, configure), or one of the words
# below; several are joined by a comma and a space.
# What changes begins with a small letter, unless the word is a name with more capitals or a digit (MPI, RoCE, K16), and ends
# without a full stop. Commits up to the one in `since` are older than the rule; merge commits have git's own subject.
# usage: subjects.sh             (through make check)
set -u
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 2
since=510ad400
words='all build ci documents headers launcher names release'
length_max=72

skip()
{
    echo "not checked: $*"
    exit 77
}

# rooms PATHS: each end of each path and of each of its folders; of files also without their ending
rooms()
{
    tr ' ' '\n' <<<"$words"
    awk -F/ '{
        for (last = 1; last <= NF; last++) {
            end = ""
            for (first = last; first >= 1; first--) {
                end = $first (end == "" ? "" : "/" end)
                name = end
                do
                    if (!seen[name]++)
                        print name
                while (last == NF && sub(/[.][^.\/]+$/, "", name) && name != "")
            }
        }
    }'
}

# judge ROOMS: reads lines "HASH SUBJECT", prints one for each that breaks the rule
judge()
{
    awk -v rooms="$1" -v length_max=$length_max '
        BEGIN { while ((getline name < rooms) > 0) known[name] = 1 }
        {
            hash = $1
            subject = substr($0, length(hash) + 2)
            wrong = ""
            if (length(subject) > length_max)
                wrong = "it has " length(subject) " characters, the limit is " length_max
            else if (!(colon = index(subject, ": ")))
                wrong = "it has no room: write `room: what changes`"
            else {
                count = split(substr(subject, 1, colon - 1), room, ", ")
                for (i = 1; i <= count; i++)
                    if (!(room[i] in known))
                        wrong = room[i] " is neither a path of the tree nor a word of contrib/check/subjects.sh"
                split(substr(subject, colon + 2), word, " ")
                if (!wrong && word[1] ~ /^[A-Z][a-z]*$/)
                    wrong = "what changes begins with a capital: " word[1]
                if (!wrong && subject ~ /[.]$/)
                    wrong = "it ends with a full stop"
            }
            if (wrong)
                print hash ": \"" subject "\": " wrong
        }'
}

command -v git >/dev/null || skip "no git here"
[ -e .git ] || skip "no repository here, as in a tarball"
git merge-base --is-ancestor $since HEAD 2>/dev/null || skip "the history does not reach back to $since, as in a shallow clone"

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
{
    git ls-tree -r --name-only $since
    git log --format= --name-only --no-renames $since..HEAD
} | rooms >"$work/rooms"

# The rule itself: these break it, each in a way of its own, and these do not.
bad=$(judge "$work/rooms" <<'BAD' | wc -l
1 The launcher finds its hosts
2 nowhere: find hosts
3 launcher: Find hosts
4 launcher: find hosts.
5 launcher: find hosts in the file, in the variable and in what the workload manager says
6 api,vector: find hosts
BAD
)
good=$(judge "$work/rooms" <<'GOOD'
1 launcher: find hosts
2 transport/verbs: read the GID: it may change
3 api, vector: RoCE needs a GID
4 documents.sh, README: MPI is optional
5 configure: look for MPI
GOOD
)
[ "$bad" -eq 6 ] && [ -z "$good" ] || { echo "the check is broken: of 6 wrong subjects it finds $bad; wrongly it finds: $good"; exit 1; }

git log --no-merges --format='%h %s' $since..HEAD | judge "$work/rooms" >"$work/wrong"
cat "$work/wrong"
[ ! -s "$work/wrong" ]
