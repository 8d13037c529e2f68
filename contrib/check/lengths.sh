#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when a file is longer than 900 lines or a function longer than 100, when a preprocessor conditional stands inside a
# function of conduit/ outside of base/, or when a file does not open with its licence. Prints the longest of each.
# usage: lengths.sh [top of the source tree]
set -u
cd "${1:-${top_srcdir:-$(dirname "$0")/../..}}" || exit 2

# A build inside the tree generates page_*.c there. Functions begin with "{" in the first column and end with "}" there: the shape that .clang-format makes.
find common conduit spawner contrib tests -name '*.[ch]' ! -path 'contrib/report/page_*.c' | sort | xargs awk -v max_file=900 -v max_function=100 '
    function end_file() {
        if (lines > longest_file) {
            longest_file = lines
            longest_file_name = name
        }
        if (lines > max_file) {
            print name ": " lines " lines, the limit is " max_file
            failed = 1
        }
    }
    FNR == 1 {
        if (NR > 1)
            end_file()
        name = FILENAME
        files++
        start = 0
        if ($0 !~ /SPDX-License-Identifier: BSD-3-Clause/) {
            print name ": does not open with SPDX-License-Identifier: BSD-3-Clause"
            failed = 1
        }
    }
    { lines = FNR }
    /^{/ { start = FNR }
    /^ *# *(if|ifdef|ifndef|elif|else)/ && start && name ~ /^conduit\// && name !~ /^conduit\/base\// {
        print name ":" FNR ": a preprocessor conditional inside a function"
        failed = 1
    }
    /^}/ && start {
        functions++
        length_here = FNR - start + 1
        if (length_here > longest) {
            longest = length_here
            longest_name = name ":" start
        }
        if (length_here > max_function) {
            print name ":" start ": a function of " length_here " lines, the limit is " max_function
            failed = 1
        }
        start = 0
    }
    END {
        end_file()
        print files " files, longest " longest_file " (" longest_file_name "); " functions " functions, longest " longest " (" longest_name ")"
        exit failed || files == 0
    }'
