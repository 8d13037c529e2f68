#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every name of the tools interface is there, in C and in C++, as what it must be (tools-names.txt),
# without a warning from any installed compiler; and each library defines what the headers declare.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
list=$here/tools-names.txt

# generate c|c++ "worlds": writes a program that uses each name of these worlds
generate()
{
    awk -F ' *\\| *' -v language="$1" -v worlds=" $2 " '
        BEGIN {
            if (worlds ~ / job /)
                print "#include <gasnetex.h>"
            print "#include <gasnet_tools.h>"
            if (language == "c++")
                print "#include <type_traits>"
            print "int use_callback(void);"
            print "#define IS_TYPE(type) typedef char is_type_##type[sizeof(type) ? 1 : -1]"
        }
        /^#/ || NF < 4 || index(worlds, " " $3 " ") == 0 { next }
        { count++; name = $1; what = $5 }
        # A name as a variable that nothing needs
        function constant(type, value) {
            print "static GASNETT_USED " type " use_" name " = " value ";"
        }
        function is_function(  result, args, i, n, arg, declared, passed, call, body) {
            result = what; sub(/ *\(.*/, "", result)
            args = what; sub(/^[^(]*\(/, "", args); sub(/\)$/, "", args)
            n = args == "" ? 0 : split(args, arg, /, */)
            for (i = 1; i <= n; i++) {
                declared = declared (i > 1 ? ", " : "") arg[i] " a" i
                passed = passed (i > 1 ? ", " : "") "a" i
            }
            call = name "(" passed ")"
            if (result == "void")
                body = "if (use_callback()) " call "; (void)sizeof(use_callback() ? (void)0 : " call ", 0);"
            else if (language == "c++")
                body = "(void)" call "; static_assert(std::is_same<std::decay<decltype(" call ")>::type, " result ">::value, \"" name "\");"
            else
                body = "(void)" call "; (void)_Generic((" call "), " result ": 0);"
            print "void call_" name "(" (declared == "" ? "void" : declared) ");"
            print "void call_" name "(" (declared == "" ? "void" : declared) ") { " body " }"
            print "#ifndef " name
            print "static GASNETT_USED " result " (*const pointer_" name ")(" (args == "" ? "void" : args) ") = " name ";"
            print "#endif"
        }
        $4 == "call" { is_function() }
        $4 == "file" && name !~ /THREADKEY_DECLARE/ { print what }
        $4 == "stmt" {
            print "void stmt_" name "(int number, const char *text, void *pointer, unsigned line);"
            print "void stmt_" name "(int number, const char *text, void *pointer, unsigned line)"
            print "{ (void)number; (void)text; (void)pointer; (void)line; " what " (void)number; (void)text; (void)pointer; }"
        }
        $4 == "type" { print "IS_TYPE(" name ");" }
        $4 == "number" { print "#if !defined(" name ") || (" (what == "" ? name " + 0 < 0" : name " != " what) ")\n#error \"" name "\"\n#endif" }
        $4 == "string" { constant("const char", name); sub(/ = /, "[] = ") }
        $4 == "token" { print "#define STRING_OF_" name " PLATFORM_STRINGIFY(" name ")"; print "static GASNETT_USED const char use_" name "[] = STRING_OF_" name ";"; print "#ifndef " name "\n#error \"" name "\"\n#endif" }
        $4 == "expr" { constant(what, name) }
        $4 == "undefined" { print "#ifdef " name "\n#error \"" name " is defined\"\n#endif" }
        $4 == "defined" { print "#ifndef " name "\n#error \"" name " is not defined\"\n#endif" }
        END {
            print "int use_callback(void) { return 0; }\nint main(void) { return use_callback(); }"
            print count + 0 > "/dev/stderr"
        }' "$list" 2>"$scratch/count" |
        sed -E 's/^(static GASNETT_USED const char use_[A-Z_0-9]+) = /\1[] = /'
}

# try LABEL command...: must succeed in silence
try()
{
    label=$1
    shift
    if "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]; then
        checked=$((checked + $(cat "$scratch/count")))
    else
        head -5 "$scratch/out"
        fail "$label"
    fi
}

# program LABEL c|c++ STANDARD "worlds" "options" LIBRARY: compiles with all compilers, links with the first
# shellcheck disable=SC2086 # lists of options
program()
{
    generate "$2" "$4" >"$scratch/names.$2"
    [ "$2" = c ] && compilers="gcc clang" || compilers="g++ clang++"
    strict="-Wall -Wextra -pedantic -Werror -Wno-deprecated-declarations -D_GNU_SOURCE=1"
    include="-I$top_srcdir/conduit/include -I$top_srcdir/conduit/include/ibv-conduit -I$top_builddir/conduit/include"
    for compiler in $compilers; do
        command -v "$compiler" >/dev/null || continue
        try "$1 with $compiler -std=$3" "$compiler" -std="$3" $strict $5 $include -fsyntax-only "$scratch/names.$2"
    done
    try "$1: all symbols are there" "${compilers%% *}" -std="$3" $strict $5 $include "$scratch/names.$2" \
        "$top_builddir/conduit/$6" -Wl,--no-as-needed -lpthread -lm -o "$scratch/names"
}

program "tools, one thread" c c11 "lite all" -DGASNETT_THREAD_SINGLE tools/libgasnet_tools-seq.so
program "tools, threads" c c2x "lite all" -DGASNETT_THREAD_SAFE tools/libgasnet_tools-par.so
program "tools, true mutexes" c c11 "lite all" "-DGASNETT_THREAD_SINGLE -DGASNETT_USE_TRUE_MUTEXES=1" tools/libgasnet_tools-seq.so
program "tools, lite" c c11 "lite" -DGASNETT_LITE_MODE tools/libgasnet_tools-seq.so
program "conduit, SEQ" c c11 "lite all job" -DGASNET_SEQ libgasnet-ibv-seq.so
program "conduit, PARSYNC" c c11 "lite all job" -DGASNET_PARSYNC libgasnet-ibv-parsync.so
program "conduit, PAR" c c11 "lite all job" -DGASNET_PAR libgasnet-ibv-par.so
program "tools, threads, C++" c++ c++11 "lite all" -DGASNETT_THREAD_SAFE tools/libgasnet_tools-par.so
program "conduit, PAR, C++" c++ c++20 "lite all job" -DGASNET_PAR libgasnet-ibv-par.so
program "no attributes" c c11 "lite all" "-DGASNETT_THREAD_SAFE -DGASNETT_COMPILER_FORCE_MISMATCH=1 -DGASNETT_USE_RESTRICT=0 -Wno-unused -Wno-return-type -Wno-implicit-fallthrough" \
    tools/libgasnet_tools-par.so

echo "$checked uses of names compiled in silence"
[ "$checked" -gt 5000 ] || fail "that is too few"
finish
