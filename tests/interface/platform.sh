#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each PLATFORM name (platform-names.txt) is what it must be, with each compiler that is here, in C
# and C++. Other projects have headers with the same names, which undefine existing names and define
# all again. Such a header before ours, after it, or between two of ours causes no warning and does
# not change the other names.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
list=$here/platform-names.txt
options="-Wall -Wextra -pedantic -Werror -D_GNU_SOURCE=1 -DGASNET_PAR $include -I$scratch"

# One declaration for each name, which does not compile if the name is of another kind
checks()
{
    awk -F ' [|] ' '
        BEGIN { print "#include <gasnet_portable_platform.h>" }
        /^#/ { next }
        { count++; name = $1; how = $2 }
        function must(condition) { print "#if !(" condition ")\n#error \"" name " is not what it must be: " how "\"\n#endif" }
        function holds(expression) { print "extern char holds_" name "[(" expression ") ? 1 : -1];" }
        how == "feature" { print "#ifdef " name; must(name " == 1"); print "#endif" }
        how == "number" { must(name " != 0") }
        how == "never" { must("!defined(" name ")") }
        how == "c" || how == "c++" {
            print how == "c" ? "#ifndef __cplusplus" : "#ifdef __cplusplus"; must(name " >= 199901L"); print "#else"
            must("!defined(" name ")"); print "#endif" }
        how == "token" { holds("sizeof(PLATFORM_STRINGIFY(" name ")) > 2 && sizeof(PLATFORM_STRINGIFY(" name ")) < sizeof(\"" name "\")") }
        how == "string" { holds("sizeof(\"\" " name ") > 4") }
        how == "version" { must(name "(1, 2, 3) < " name "(1, 3, 2) && " name "(1, 3, 2) < " name "(2, 0, 0)") }
        how == "compare" { must(name "(1, 2, 3) == " (name ~ /G[TE]$/) " && " name "(99, 0, 0) == " (name ~ /L[TE]$/)) }
        how == "stringify" { print "#define SEVEN 7"; holds("sizeof(" name "(SEVEN)) == 2") }
        END { if (count != 128) print "#error \"" count " names instead of 128\"" }' "$list"
}

# expected LANGUAGE COMPILER: exactly one name of each kind is set, and it is the right one
expected()
{
    case $2 in g*) family=GNU ;; *) family=CLANG ;; esac
    machine=$(uname -m | tr '[:lower:]' '[:upper:]')
    echo "PLATFORM_ARCH_64 PLATFORM_ARCH_$machine PLATFORM_ARCH_LITTLE_ENDIAN PLATFORM_COMPILER_$family PLATFORM_COMPILER_${family}_$1 PLATFORM_OS_LINUX" |
        tr ' ' '\n'
}

# A header of another project. It claims to be newer than all others, and describes the same machine
# differently.
foreign()
{
    sed -n 's/^\(PLATFORM_[A-Z0-9_]*\) |.*/#undef \1/p' "$list"
    cat <<'HEADER'
#define PLATFORM_HEADER_VERSION 1000
#define PLATFORM_STRINGIFY_HELPER_(x) #x
#define PLATFORM_STRINGIFY(x) PLATFORM_STRINGIFY_HELPER_(x)
#define PLATFORM_COMPILER_VERSION_INT(maj, min, pat) (10000 * (maj) + 100 * (min) + (pat))
#define PLATFORM_COMPILER_VERSION 120000
#define PLATFORM_COMPILER_VERSION_STR "foreign"
#define PLATFORM_COMPILER_VERSION_GE(maj, min, pat) 1
#define PLATFORM_COMPILER_FAMILYNAME FOREIGN
#define PLATFORM_COMPILER_FAMILYID 999
#define PLATFORM_COMPILER_ID 999
#define PLATFORM_COMPILER_IDSTR "|foreign|"
#define PLATFORM_OS_LINUX 1
#define PLATFORM_OS_FAMILYNAME FOREIGN
#define PLATFORM_ARCH_FAMILYNAME FOREIGN
HEADER
    expected C gcc | sed -n -e '/_OS_/d' -e 's/.*/#define & 1/p'
}

compilers=
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null && compilers="$compilers $compiler"
done
checks >"$scratch/checks.c"
foreign >"$scratch/foreign.h"
ours='#include <gasnetex.h>\n#include <gasnet_tools.h>\n#include <gasnet.h>'
printf '#include <foreign.h>\n%b\n' "$ours" >"$scratch/front.c"
printf '%b\n#include <foreign.h>\n' "$ours" >"$scratch/behind.c"
printf '#include <gasnetex.h>\n#include <foreign.h>\n#include <gasnet_tools.h>\n#include <foreign.h>\n#include <gasnet_portable_platform.h>\n' \
    >"$scratch/between.c"
for file in front behind between; do
    cat >>"$scratch/$file.c" <<'SOURCE'
#if PLATFORM_HEADER_VERSION != 1000 || PLATFORM_COMPILER_FAMILYID != 999 || PLATFORM_COMPILER_VERSION_INT(0, 1, 2) != 102
#error "the other header's names were touched"
#endif
extern const char *theirs, *ours;
const char *theirs = PLATFORM_STRINGIFY(PLATFORM_OS_FAMILYNAME) PLATFORM_COMPILER_IDSTR, *ours = GASNETT_CONFIG_STRING GASNET_CONFIG_STRING;
SOURCE
done
for compiler in $compilers; do
    language=c
    case $compiler in *++) language=c++ ;; esac
    # shellcheck disable=SC2086 # a list
    for file in checks front behind between; do
        $compiler -x $language $options -fsyntax-only "$scratch/$file.c" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ] && continue
        head -5 "$scratch/out"
        fail "$compiler, $file"
    done
    # shellcheck disable=SC2086 # a list
    $compiler -x $language $options -E -dM "$scratch/checks.c" | awk -v list="$list" '
        BEGIN { while (getline <list > 0) if (/ [|] feature$/) feature[$1] }
        $2 in feature { print $2 }' | sort >"$scratch/is"
    expected "$(echo $language | sed 's/c++/CXX/; s/c$/C/')" "$compiler" | sort >"$scratch/expected"
    cmp -s "$scratch/is" "$scratch/expected" || fail "$compiler: defined are $(tr '\n' ' ' <"$scratch/is")"
done
echo "128 names with $compilers"
finish
