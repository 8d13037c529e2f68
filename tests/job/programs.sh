#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Writes programs.inc, which Makefile.inc includes, from programs.txt: one program for each line and mode. automake has no
# loop for that. autogen.sh runs this first, and make again when the list has changed.
# usage: programs.sh
set -eu
cd "$(dirname "$0")"
trap 'rm -f programs.inc.new' EXIT
awk '
/^#/ || NF == 0 { next }
NF < 3 { printf "programs.sh: programs.txt:%d: not a name, modes and sources: %s\n", NR, $0 >"/dev/stderr"; exit 1 }
{
    sources = ""
    for (i = 3; i <= NF; i++)
        sources = sources " tests/job/" $i
    count = split($2, modes, ",")
    for (i = 1; i <= count; i++) {
        mode = modes[i]
        if (mode !~ /^(seq|par|parsync|large|everything)$/) {
            printf "programs.sh: programs.txt:%d: %s is not seq, par, parsync, large or everything\n", NR, mode >"/dev/stderr"
            exit 1
        }
        canon = "tests_job_" $1 "_" mode
        if (mode ~ /^(large|everything)$/) {
            print "segment_programs += tests/job/" $1 "-" mode
            print canon "_CPPFLAGS = $(job_cppflags) $(segment_" mode ") -DGASNET_PAR"
            print canon "_SOURCES =" sources
            print canon "_LDFLAGS = -static"
            print canon "_LDADD = $(job_" mode ")\n"
            continue
        }
        print "check_PROGRAMS += tests/job/" $1 "-" mode
        print canon "_SOURCES =" sources
        print canon "_CPPFLAGS = $(job_cppflags) -DGASNET_" toupper(mode)
        print canon "_LDFLAGS = -static"
        print canon "_LDADD = $(job_" mode ")\n"
    }
}' programs.txt >programs.inc.new
mv programs.inc.new programs.inc
