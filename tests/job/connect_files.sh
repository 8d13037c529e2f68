#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A run records which ranks were connected, and the next one connects only those at start-up: with a file for each rank, with one
# for all, and with the files of all ranks concatenated. Files that do not match the job are refused, or ignored with a message.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
connected=$jobs/connected-seq
only="GASNET_CONNECT_DYNAMIC=0" # nothing is connected later: a job that needs more than the file has ends with an error

# same A B: two files of lines in any order.
same()
{
    [ "$(sort "$1")" = "$(sort "$2")" ] || failed "$1 and $2 differ: $(sort "$1" "$2" | uniq -u | tr '\n' '|')"
}

has()
{
    grep -qx -e "$2" "$1" || failed "$1 has no line '$2': $(tr '\n' '|' <"$1")"
}

one_for_each_rank()
{
    SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/first.%" good 6 "$connected" 2
    for r in 0 1 2 3 4 5; do
        has "$scratch/first.$r" 'size: 6'
        has "$scratch/first.$r" 'base: 36'
    done
    grep -q '^1: .*3' "$scratch/first.1" || failed "rank 1 put to rank 3: $(cat "$scratch/first.1")"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/first.% GASNET_CONNECTFILE_OUT=$scratch/second.% $only GASNET_VERBOSEENV=1" \
        good 6 "$connected" 2
    says 'connected at start-up by GASNET_CONNECTFILE_IN: [1-5] of 5 ranks' 1
    for r in 0 1 2 3 4 5; do
        same "$scratch/first.$r" "$scratch/second.$r"
    done
    # All files concatenated, as the manual proposes; a rank that they lack can't be used.
    cat "$scratch"/first.? >"$scratch/all"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/all $only" good 6 "$connected" 2
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/all $only" job 6 "$connected" 2 3
    if ! grep -q '^0: .*3' "$scratch/all"; then
        fails_with 1
        says 'rank [0-5] (.*) is not connected: it is not in the connect file, and GASNET_CONNECT_DYNAMIC=0'
    fi
    # If more ranks may be connected, the file only names the first ones.
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/all" good 6 "$connected" 2 3
    leftovers=$(find "$scratch" -name '*.part')
    [ -z "$leftovers" ] || failed "left behind: $leftovers"
}

one_for_all()
{
    echo "left by a job that was killed" >"$scratch/shared.part"
    SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/shared GASNET_CONNECTFILE_BASE=2" good 4 "$connected" 1
    has "$scratch/shared" 'base: 2'
    grep -q '^10: .*11' "$scratch/shared" || failed "rank 2 put to rank 3: $(cat "$scratch/shared")"
    [ "$(grep -c '^size' "$scratch/shared")" -eq 1 ] || failed "more than one head"
    [ ! -e "$scratch/shared.part" ] || failed "left behind: shared.part"
    cp "$scratch/shared" "$scratch/shared.in"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/shared.in GASNET_CONNECTFILE_OUT=$scratch/shared GASNET_CONNECTFILE_BASE=2 $only" \
        good 4 "$connected" 1
    same "$scratch/shared" "$scratch/shared.in"
    # The manual: the file is ignored if no ranks are connected at start-up.
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/missing GASNET_CONNECT_STATIC=0" good 2 "$connected" 1
    says 'CONNECTFILE' 0
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/shared.in GASNET_CONNECT_STATIC=1 $only" good 4 "$connected" 1
    SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/no/where" job 2 "$connected" 1
    fails_with 74 "a directory that is missing"
    says "GASNET_CONNECTFILE_OUT: $scratch/no/where can't be written: No such file or directory; give" 1
}

# A file that can't be written is reported when the job starts, even if a rank then ends the job by force, as here.
unwritable()
{
    mkdir "$scratch/directory" "$scratch/closed"
    chmod 555 "$scratch/closed"
    for name in no/where no/% directory closed/%; do
        [ "$name" != closed/% ] || [ "$(id -u)" -ne 0 ] || continue # root may write anywhere
        case $name in *%) lines=3 ;; *) lines=1 ;; esac
        SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/$name" job 3 "$jobs/first_contact-seq" killed
        says "GASNET_CONNECTFILE_OUT: $scratch/${name%%%}[0-2]* *can't be written: .*; give" $lines
    done
    [ ! -e "$scratch/directory.part" ] || failed "left behind: directory.part"
    # The job succeeds except for the file; a device is not replaced, even by root, who could.
    SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/directory" job 2 "$jobs/hello-seq"
    fails_with 74 "a file that cannot be made"
    says "can't be written: Is a directory; give" 1
    ln -s /dev/full "$scratch/full"
    ln -s /dev/full "$scratch/full0"
    for name in full full%; do
        SETTINGS="GASNET_CONNECTFILE_OUT=$scratch/$name" job 1 "$jobs/hello-seq"
        fails_with 74 "a full disk, $name"
        says "GASNET_CONNECTFILE_OUT: $scratch/full0* can't be written: No space left on device; give" 1
    done
    [ -h "$scratch/full" ] && [ -c "$scratch/full" ] || failed "the device was replaced"
}

unfit()
{
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/missing" good 2 "$connected" 1
    says "GASNET_CONNECTFILE_IN: $scratch/missing: No such file or directory; it is not used, and ranks are connected when" 1
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/missing $only" job 2 "$connected" 1
    fails_with 1
    says "GASNET_CONNECTFILE_IN: $scratch/missing: No such file or directory; with GASNET_CONNECT_DYNAMIC=0 ranks can't be" 1
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch" good 2 "$connected" 1
    says "GASNET_CONNECTFILE_IN: $scratch: Is a directory; it is not used" 1
    # Files without an end, or larger than the lists of all ranks.
    SETTINGS="GASNET_CONNECTFILE_IN=/dev/zero" good 2 "$connected" 1
    says "GASNET_CONNECTFILE_IN: /dev/zero: it is not text: a zero byte is in it; it is not used" 1
    yes '1: 0' | head -c 2000000 >"$scratch/long"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/long $only" job 2 "$connected" 1
    fails_with 1
    says "GASNET_CONNECTFILE_IN: $scratch/long: it has more than 1048704 bytes, the limit for such a file; with GASNET_CONNECT" 1
    printf 'size: 6\nbase: 10\n0: 5\n' >"$scratch/other"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/other" good 2 "$connected" 1
    says 'line 1: it is of a job of 6 ranks, but this one has 2; it is not used' 1
    printf '0: 1\n1: 1-0\n' >"$scratch/bad"
    SETTINGS="GASNET_CONNECTFILE_IN=$scratch/bad" job 2 "$connected" 1
    fails_with 1
    says "GASNET_CONNECTFILE_IN: $scratch/bad: line 2: '1-0' is not a range: its end is below its begin" 1
    SETTINGS="GASNET_CONNECTFILE_BASE=37" job 2 "$connected" 1
    fails_with 2
    says "GASNET_CONNECTFILE_BASE='37' is not a whole number from 2 to 36" 1
}

lane each one_for_each_rank
lane all one_for_all
lane unfit unfit
lane unwritable unwritable
finish
