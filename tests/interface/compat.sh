#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Names that were never part of the interface, but that clients lean on (compat.txt), behave as
# clients expect, in C and C++; names that clients define too yield to the client's definition and
# to the system's.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
list=$here/compat.txt
libraries=$top_builddir/conduit
options="-Wall -Wextra -pedantic -Werror -D_GNU_SOURCE=1 -pthread $include"

# The program that uses each name as the list says; it prints the names that differ.
generate()
{
    awk -F ' [|] ?' '
        BEGIN {
            print "#include <gasnet.h>\n#include <stdio.h>"
            print "#define TEXT_OF_(...) #__VA_ARGS__\n#define TEXT_OF(...) TEXT_OF_(__VA_ARGS__)"
            print "static int begins(const char *text, const char *name, const char *first)\n{\n    text += *text == 34;"
            print "    return strncmp(text, first, strlen(first)) == 0 && strcmp(text, name) != 0;\n}"
            print "int check(int number);\nGASNETT_THREADKEY_DEFINE(key);\n__thread void *key;"
            print "static int bad(const char *name)\n{\n    printf(\"%s is something else\\n\", name);\n    return 1;\n}"
        }
        /^#/ { next }
        { count++ }
        $2 == "one" { print "#if !defined(" $1 ") || " $1 " != 1\n#error \"" $1 " is not one\"\n#endif" }
        $2 == "defined" { print "#ifndef " $1 "\n#error \"" $1 " is not defined\"\n#endif" }
        $2 == "undefined" { print "#ifdef " $1 "\n#error \"" $1 " is defined\"\n#endif" }
        $2 == "text" { body = body "    if (!begins(TEXT_OF(" $1 "), \"" $1 "\", \"" $3 "\"))\n        wrong += bad(\"" $1 "\");\n" }
        $2 == "use" { body = body "    if (!(" $3 "))\n        wrong += bad(\"" $1 "\");\n" }
        END {
            print "int check(int number)\n{\n    int wrong = 0;\n    (void)number;\n" body "    return wrong;\n}"
            print "int main(int argc, char **argv)\n{\n    (void)argv;\n    return check(argc);\n}"
            print count >"/dev/stderr"
        }' "$list"
}

language()
{
    case $1 in *++) echo c++ ;; *) echo c ;; esac
}

# try COMPILER STANDARD MODE
# shellcheck disable=SC2086 # lists of options
try()
{
    mode=$(echo "$3" | tr '[:upper:]' '[:lower:]')
    if ! $1 -x "$(language "$1")" -std=$2 $options -DGASNET_$3 -DGASNETI_BUG1389_WORKAROUND=1 "$scratch/names.c" -x none \
        "$libraries/libgasnet-ibv-$mode.so" "-Wl,-rpath,$libraries" -o "$scratch/names" >"$scratch/out" 2>&1; then
        grep -E 'error|undefined' "$scratch/out" | head -5
        fail "$1 -std=$2, $3"
    elif ! "$scratch/names" >"$scratch/out"; then
        cat "$scratch/out"
        fail "$1 -std=$2, $3: values are wrong"
    fi
}

# A client's own names, and the system's, in front and behind
# shellcheck disable=SC2086 # lists of options
owned()
{
    cat >"$scratch/owned.c" <<'SOURCE'
#define HAVE_PTHREAD_H 7
#define HAVE_MMAP 7
#define HAVE_PTHREAD_SETCONCURRENCY 7
#define SIZEOF_INT 7
#define MIN(x, y) 7
#define MAX(x, y) 7
#define PRIuSZ 7
#define _STRINGIFY(x) 7
#define _CONCAT(x, y) 7
#define GASNETI_HIWORD(x) 7
#define GASNETI_LOWORD(x) 7
#define GASNETI_MAKEWORD(x, y) 7
#include <gasnet.h>
typedef char all_mine[HAVE_PTHREAD_H + HAVE_MMAP + HAVE_PTHREAD_SETCONCURRENCY + SIZEOF_INT + MIN(1, 2) + MAX(1, 2) + PRIuSZ +
    _STRINGIFY(x) + _CONCAT(a, b) + GASNETI_HIWORD(1) + GASNETI_LOWORD(1) + GASNETI_MAKEWORD(1, 2) == 12 * 7 ? 1 : -1];
SOURCE
    printf '#include <sys/param.h>\n#include <gasnet.h>\nextern char behind[MAX(1, 2)];\n' >"$scratch/behind.c"
    printf '#include <gasnet.h>\n#include <sys/param.h>\nextern char front[MAX(1, 2)];\n' >"$scratch/front.c"
    for compiler in $compilers; do
        for file in owned behind front; do
            $compiler -x "$(language "$compiler")" $options -DGASNET_PAR -fsyntax-only "$scratch/$file.c" >"$scratch/out" 2>&1 || {
                head -3 "$scratch/out"
                fail "$compiler: names of the client's own, $file"
            }
        done
    done
}

compilers=
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null && compilers="$compilers $compiler"
done
generate >"$scratch/names.c" 2>"$scratch/count"
for compiler in $compilers; do
    case $compiler in
    *++) try $compiler c++11 SEQ ;;
    *) try $compiler c11 PAR ;;
    esac
done
owned
echo "$(cat "$scratch/count") names"
[ "$(cat "$scratch/count")" -eq 33 ] || fail "33 were expected"
finish
