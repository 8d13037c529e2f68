#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fails when the documents and the tree disagree: an option of the launcher that its manual page lacks, a setting that no
# page knows, a path or a manual page that is not there, a generated part that is out of date, a front page that grew, a
# message in doc/messages.md that no source can print, a head of doc/benchmarks.md that does not fit its sections.
# usage: documents.sh             (through make check)
#        documents.sh --update    writes the generated parts
set -u
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
built=${top_builddir:-$top}
launcher=${GASNETRUN:?the launcher: run through make check, or set it}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$top" || exit 2
pages="man/gasnetrun_ibv.1 man/gasnet_report.1 man/gasnet_trace.1 man/trunkline.7 man/trunkline_rails.3 man/softhca-fault.7 man/softgpu.1 contrib/softhca/softhca.1 contrib/mcswitch/daemon/mcswitchd.1"
texts="README.md doc/README HACKING CONTRIBUTING CHANGELOG doc/*.md"
readme_lines=150
bad=0

wrong()
{
    echo "$*"
    bad=1
}

# The rooms of the library, top down, as doc/architecture.md shows them.
rooms()
{
    sed '/^#/d; /^in /d; /^$/d; s/^/    /' contrib/check/layers.txt
}

# architecture FILE: doc/architecture.md with the rooms as they are, to FILE
architecture()
{
    rooms >"$work/rooms"
    awk -v rooms="$work/rooms" '
        /^<!-- end of rooms -->$/ { inside = 0 }
        !inside { print }
        /^<!-- rooms: from contrib\/check\/layers.txt -->$/ {
            inside = 1
            print ""
            while ((getline line < rooms) > 0)
                print line
            print ""
        }' doc/architecture.md >"$1"
}

check_options()
{
    "$launcher" --help >"$work/help" || exit 2
    sed 's/\\-/-/g; s/\\f[BIR]//g; s/"//g' man/gasnetrun_ibv.1 >"$work/page"
    for option in $(grep -oE '^  --?[A-Za-z]+|, --?[A-Za-z]+' "$work/help" | tr -d ' ,' | grep -v '^-nN$'); do
        grep -qE -- "(^|[^-A-Za-z])${option}([^-A-Za-z]|\$)" "$work/page" || wrong "gasnetrun_ibv(1) lacks the option $option"
    done
}

check_settings()
{
    "$launcher" --settings >"$work/settings" || exit 2
    "$launcher" --settings=man | sed 's/\\-/-/g; s/^\.B //' >"$work/settings.man"
    for name in $(grep -oE 'GASNET_[A-Z0-9_]+' "$work/settings" | sort -u); do
        grep -q "$name" "$work/settings.man" || wrong "trunkline-settings(7) lacks $name"
    done
    grep -rohE '\bGASNET_\w+' conduit/include conduit/*.in configure.ac | sort -u >"$work/names"
    # The heading of a page has its name in capitals.
    # shellcheck disable=SC2086 # lists
    for name in $(sed '/^\.TH /d' $texts $pages man/trunkline-settings.7.in man/trunkline-counters.7.in | grep -oE '\bGASNET_[A-Z0-9_]+[A-Z0-9]\b' | sort -u); do
        grep -qE "(^|[^A-Z_])$name" "$work/settings" && continue
        grep -qx -- "$name" "$work/names" || wrong "the documents name $name, which nothing knows"
    done
}

check_paths()
{
    # shellcheck disable=SC2086
    for path in $(grep -ohP '(?<![A-Za-z0-9_/-])(conduit|spawner|contrib|tests|doc|man)/[A-Za-z0-9_./-]+' $texts | sed 's/[.,/]*$//' | sort -u); do
        # Or a program that make can build
        case " ${TRUNKLINE_TEST_PROGRAMS-} " in *" $path "*) continue ;; esac
        [ -e "$path" ] || [ -e "$built/$path" ] || wrong "the documents name $path, which is not there"
    done
    # shellcheck disable=SC2086
    for page in $(grep -ohE '\b(gasnetrun_ibv|gasnet_report|gasnet_trace|trunkline[a-z_-]*|softgpu|softhca[a-z-]*|mcswitchd)\([137]\)' $texts | sort -u); do
        name=${page%(*}.${page: -2:1}
        [ -e "man/$name" ] || [ -e "man/$name.in" ] || [ -e "contrib/softhca/$name" ] || [ -e "contrib/mcswitch/daemon/$name" ] || wrong "there is no manual page $page"
    done
}

check_roff()
{
    if ! command -v mandoc >/dev/null; then
        echo "not checked: the form of manual pages (no mandoc)"
        return
    fi
    "$launcher" --settings=man >"$work/part"
    sed -e "/^@SETTINGS@\$/{r $work/part" -e 'd;}' man/trunkline-settings.7.in >"$work/trunkline-settings.7"
    "$launcher" --counters=man >"$work/part"
    sed -e "/^@COUNTERS@\$/{r $work/part" -e 'd;}' man/trunkline-counters.7.in >"$work/trunkline-counters.7"
    for page in man/*.[137] contrib/softhca/*.[17] contrib/mcswitch/daemon/*.1 "$work"/trunkline-{settings,counters}.7; do
        mandoc -T lint -W warning "$page" >"$work/lint" 2>&1
        [ -s "$work/lint" ] && wrong "$(head -3 "$work/lint")"
    done
}

# Texts of the sources with adjacent string literals joined and formats, as well as macros between literals, written as "...".
source_texts()
{
    find common conduit spawner contrib/softhca contrib/softgpu contrib/mcswitch contrib/trace contrib/report contrib/info -name '*.[ch]' ! -path '*/fuzz/*' -exec cat {} + | tr '\n' ' ' |
        sed -E 's/"[[:space:]]+"//g; s/%"[[:space:]]*(PRI[a-zA-Z0-9]+)[[:space:]]*"/.../g; s/"[[:space:]]*[A-Z_]+[[:space:]]*"/.../g
            s/%([-+0]?[0-9*]*(\.[0-9*]+)?(hh|h|ll|l|z|j|t)?[diouxXcsgfp])/.../g'
}

# Each message that the table quotes, in backquotes in the first column, is one that the sources can print: all of its fixed
# parts of some length (the longest, where all are short) are in a string there.
check_messages()
{
    source_texts >"$work/texts"
    grep -E '^\| *`' doc/messages.md | sed 's/^| *//; s/ *|.*//' | grep -oE '`[^`]+`' | tr -d '`' >"$work/messages"
    [ "$(wc -l <"$work/messages")" -ge 100 ] || wrong "doc/messages.md quotes fewer than 100 messages"
    LC_ALL=C awk '
        FILENAME == ARGV[1] { texts = texts $0 "\n"; next }
        {
            parts = split($0, part, /\.\.\./)
            longest = ""
            for (i = 1; i <= parts; i++)
                if (length(part[i]) > length(longest))
                    longest = part[i]
            for (i = 1; i <= parts; i++)
                if ((length(part[i]) >= 12 || part[i] == longest) && !index(texts, part[i]))
                    print "doc/messages.md quotes '\''" $0 "'\'', but no source says '\''" part[i] "'\''"
        }' "$work/texts" "$work/messages" >"$work/unsaid"
    [ -s "$work/unsaid" ] && wrong "$(cat "$work/unsaid")"
}

if [ "${1:-}" = --update ]; then
    architecture "$work/new" && cp "$work/new" doc/architecture.md
    exit
fi
tests/bench/benchmarks --check || wrong "doc/benchmarks.md does not say which sections are of which commit: run tests/bench/benchmarks --head"
architecture "$work/new"
cmp -s "$work/new" doc/architecture.md || wrong "doc/architecture.md does not show the rooms: run contrib/check/documents.sh --update"
[ "$(wc -l <README.md)" -le $readme_lines ] || wrong "README.md has more than $readme_lines lines: it is a front door"
check_options
check_settings
check_paths
check_roff
check_messages
exit $bad
