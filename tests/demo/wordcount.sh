#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wordcount counts the same as `tr | sort | uniq -c`, for any number of ranks and any shape of the text, and reports bad input.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
wordcount=$top_builddir/tests/demo/wordcount
export LC_ALL=C

# The judge: every word with its count. Text that begins without a letter makes an empty first "word".
pipeline()
{
    cat -- "$@" | tr -cs 'A-Za-z' '\n' | tr A-Z a-z | sort | uniq -c | awk 'NF == 2 { print $1, $2 }'
}

# same N FILES...
same()
{
    ranks=$1
    shift
    pipeline "$@" >"$scratch/expected"
    job "$ranks" "$wordcount" --all "$@"
    passes "$ranks ranks over $*" || return
    cmp "$scratch/expected" "$scratch/out" >&2 || failed "$ranks ranks over $*: another answer"
}

# complains STATUS TEXT ARGS...: one line, from whatever number of ranks.
complains()
{
    code=$1 text=$2
    shift 2
    for ranks in 1 3; do
        job $ranks "$wordcount" "$@"
        fails_with "$code" "wordcount $*"
        says "^wordcount: .*$text" 1
        [ "$(grep -vc 'using softhca' "$scratch/err")" -eq 1 ] || failed "wordcount $*: more than one line"
        within 10
    done
}

real_text()
{
    licences=$(find /usr/share/common-licenses -type f 2>/dev/null | sort)
    [ -n "$licences" ] || licences="$top_srcdir/LICENSE $top_srcdir/README.md"
    for n in 1 2 3 4 8; do
        # shellcheck disable=SC2086 # a list of files
        same $n $licences
    done
}

odd_text()
{
    printf 'no newline at the end, and the next file goes on' >"$scratch/open"
    printf 'with the word' >"$scratch/on"
    : >"$scratch/empty"
    printf '\n\n  \n' >"$scratch/blank"
    printf 'one\n' >"$scratch/one"
    printf 'A\0b\377c\r\nD-e_f9g\n' >"$scratch/bytes"
    awk 'BEGIN { for (i = 0; i < 3000; i++) printf "word%c%c ", 97 + i % 26, 97 + i / 26 % 26; print "" }' >"$scratch/line"
    awk 'BEGIN { for (i = 0; i < 300000; i++) printf "x"; printf "\ny " ; for (i = 0; i < 300000; i++) printf "X"; print " y" }' \
        >"$scratch/long"
    awk 'BEGIN { for (i = 0; i < 60000; i++) { n = i; w = ""; while (n) { w = w sprintf("%c", 97 + n % 26); n = int(n / 26) } print w "q" } }' \
        >"$scratch/many"
    for n in 1 3 4; do
        same $n "$scratch/open" "$scratch/on" "$scratch/one"
        same $n "$scratch/empty" "$scratch/blank" "$scratch/one" "$scratch/empty"
        same $n "$scratch/blank"
        same $n "$scratch/bytes" "$scratch/line"
    done
    same 2 "$scratch/long" "$scratch/line"
    same 4 "$scratch/many" "$scratch/long"
}

report()
{
    job 3 "$wordcount" "$top_srcdir/LICENSE"
    passes report
    [ "$(grep -c '^ *[0-9][0-9]*  [a-z]*$' "$scratch/out")" -eq 20 ] || failed "not 20 words in the report"
    total=$(pipeline "$top_srcdir/LICENSE" | awk '{ n += $1 } END { print n }')
    grep -q "^$total words, " "$scratch/out" || failed "the report does not say $total words"
    [ "$(grep -c '^rank 0 to rank [0-2]: ' "$scratch/out")" -eq 3 ] || failed "the report does not name the transports"
    job 2 "$wordcount" --help
    passes help
    grep -q '^usage: wordcount' "$scratch/out" || failed "no usage"
}

real_text
odd_text
report
complains 2 "no files given"
complains 2 "unknown option --al" --al "$scratch/one"
complains 1 "$scratch/missing: No such file" "$scratch/one" "$scratch/missing"
complains 1 "is a directory" "$scratch"
complains 1 "not a regular file" /dev/null
complains 1 "the file is empty" "$scratch/empty"
complains 1 "all files are empty" "$scratch/empty" "$scratch/empty"
if [ "$(id -u)" -ne 0 ]; then
    cp "$scratch/one" "$scratch/secret"
    chmod 0 "$scratch/secret"
    complains 1 "Permission denied" "$scratch/secret"
fi
finish
