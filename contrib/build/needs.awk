# SPDX-License-Identifier: BSD-3-Clause
# Lists the tree's programs that the scripts of some tests name; these are built before the tests run. Reads the scripts, and those
# that
# they name (common.sh, guest scripts), without comments. A program counts as named by its path, by its name in a script of
# its folder, or, where programs are one for each mode, by the name before the mode: "$jobs/barrier-$mode" names all of them. A word
# that only looks like a name costs a program that is not needed, nothing else.
# usage: awk -v programs='PATH...' -v tests='SCRIPT...' -f needs.awk      (in the source directory)
BEGIN {
    count = split(programs, path, " ")
    for (i = 1; i <= count; i++) {
        is_program[path[i]] = 1
        folder = base = path[i]
        sub(/\/[^\/]*$/, "", folder)
        sub(/.*\//, "", base)
        in_folder[folder, base] = path[i]
        # The common part of NAME-seq and NAME-par
        if (match(base, /-(seq|par|parsync|large|everything)$/)) {
            stem = substr(base, 1, RSTART - 1)
            family[folder, stem] = family[folder, stem] " " path[i]
        }
    }
    count = split(tests, test, " ")
    for (i = 1; i <= count; i++)
        read_script(test[i])
    for (found in needed)
        print found
}

function need(list,    i, n, one)
{
    n = split(list, one, " ")
    for (i = 1; i <= n; i++)
        needed[one[i]] = 1
}

function read_script(script,    folder, line, words, i, n, word, last)
{
    if (script in was_read)
        return
    was_read[script] = 1
    folder = script
    sub(/\/[^\/]*$/, "", folder)
    while ((getline line <script) > 0) {
        if (line ~ /^[ \t]*#/)
            continue
        # Everything but names, folders and modes that are variables separates words.
        gsub(/[^A-Za-z0-9_.\/$-]+/, " ", line)
        n = split(line, words, " ")
        for (i = 1; i <= n; i++) {
            word = words[i]
            sub(/^\$?(top_builddir|abs_top_builddir)\//, "", word)
            if (word in is_program)
                needed[word] = 1
            last = word
            sub(/.*\//, "", last)
            if ((folder, last) in in_folder)
                needed[in_folder[folder, last]] = 1
            # hello-seq is a program of tests/job for scripts of all folders, watchdog only as $jobs/watchdog
            if ((word ~ /^\$jobs\// || last ~ /-(seq|par|parsync|large|everything)$/) && ("tests/job", last) in in_folder)
                needed[in_folder["tests/job", last]] = 1
            # ${top_srcdir:?...}/tests/job/common.sh: what stands before the folder is gone
            if (word ~ /^\/tests\/.*\.sh$/)
                read_script(substr(word, 2))
            else if (last ~ /\.sh$/ && !((folder "/" last) in was_read) && is_there(folder "/" last))
                read_script(folder "/" last)
            # barrier-$mode, hang-${3:-seq}, and large=$jobs/large_messages, to which a mode is added later
            if (last ~ /-\$?$|-\$/ || word ~ /^(\$jobs|tests\/job)\//) {
                sub(/-\$.*|-$/, "", last)
                if (("tests/job", last) in family)
                    need(family["tests/job", last])
            }
        }
    }
    close(script)
}

function is_there(file,    line, has)
{
    has = (getline line <file) > 0
    if (has)
        close(file)
    return has
}
