#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every name of the public interface (names.txt) is in its header as what it must be, in C and C++, in each threading mode,
# and the library defines the symbols it needs, except for the names that missing.txt lists; those
# must still be missing. `surface.sh --update`, with top_srcdir and top_builddir set, removes names
# that now exist from missing.txt.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
missing=$here/missing.txt

libraries=$top_builddir/conduit
strict="-Wall -Wextra -pedantic -Werror -D_GNU_SOURCE=1 -pthread"

listed()
{
    grep -q "^$1 |" "$missing"
}

# The headers that are there
headers=
for header in $(awk -F ' [|] ' '!/^#/ && !seen[$3]++ { print $3 }' "$here/names.txt"); do
    [ -f "$top_srcdir/conduit/include/$header" ] && headers="$headers $header"
done

# Prints the listed names that exist, one a line: a macro is detected by #ifdef; any other name
# makes a typedef of that name fail.
# shellcheck disable=SC2086 # lists of options
came()
{
    {
        for header in $headers; do
            echo "#include <$header>"
        done
        awk -F ' [|] ' '!/^#/ && $1 !~ /[.]h$/ {
            print "#ifdef " $1 "\n#pragma message(\"came: " $1 ":\")\n#else\ntypedef struct trunkline_absent *" $1 ";\n#endif" }' "$missing"
    } >"$scratch/came.c"
    "$TRUNKLINE_TEST_CC" -std=c11 -D_GNU_SOURCE=1 -DGASNET_PAR $include -fmax-errors=0 -fsyntax-only "$scratch/came.c" 2>"$scratch/came.err"
    sed -n -e "s/.*message: '\{0,1\}came: \([A-Za-z_0-9]*\):.*/\1/p" \
        -e "s/.*error: conflicting type[a-z ]* for '\([A-Za-z_0-9]*\)'.*/\1/p" \
        -e "s/.*error: '\([A-Za-z_0-9]*\)' redeclared as .*/\1/p" "$scratch/came.err"
    grep 'error:' "$scratch/came.err" | grep -v 'conflicting type\|redeclared as' >&2
    for header in $headers; do
        listed "$header" && echo "$header"
    done
}

update()
{
    came | sort -u >"$scratch/came"
    awk -F ' [|] ' 'FILENAME == ARGV[1] { came[$1]; next } !($1 in came)' "$scratch/came" "$missing" >"$scratch/missing" && cat "$scratch/missing" >"$missing"
    echo "$(wc -l <"$scratch/came") names are missing no more"
    exit
}

# sources MODE c|c++: one for each header, and one that runs what they check
sources()
{
    rm -rf "$scratch/src"
    mkdir "$scratch/src"
    used=0
    for header in $headers; do
        awk -v header="$header" -v mode="$1" -v language="$2" -f "$here/surface.awk" "$missing" "$here/names.txt" \
            >"$scratch/src/$header.$2" 2>"$scratch/count"
        used=$((used + $(cat "$scratch/count")))
        unit=check_$(echo "$header" | tr -c 'a-z\n' _)
        echo "int $unit(int number, void *pointer);" >>"$scratch/src/declared"
        echo "    wrong += $unit(0, 0);" >>"$scratch/src/called"
    done
    {
        cat "$scratch/src/declared"
        printf 'int main(void)\n{\n    int wrong = 0;\n'
        cat "$scratch/src/called"
        printf '    return wrong;\n}\n'
    } >"$scratch/src/main.$2"
}

# quiet LABEL command...: must succeed in silence
quiet()
{
    label=$1
    shift
    if "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]; then
        checked=$((checked + used))
    else
        grep 'error\|undefined' "$scratch/out" | sed "s,$scratch/,," | head -5
        fail "$label"
    fi
}

# mode MODE: C and C++, linked and run by gcc, read by clang
# shellcheck disable=SC2086 # lists of options
mode()
{
    library=libgasnet-ibv-$(echo "$1" | tr '[:upper:]' '[:lower:]').so
    for language in c c++; do
        [ $language = c ] && first=gcc second=clang standard=c11 || first=g++ second=clang++ standard=c++11
        sources "$1" $language
        options="-std=$standard $strict -DGASNET_$1 $include"
        rm -f "$scratch/names"
        quiet "$1 by $first" $first $options "$scratch"/src/*.$language "$libraries/$library" "-Wl,-rpath,$libraries" -o "$scratch/names"
        [ ! -x "$scratch/names" ] || "$scratch/names" || fail "$1 by $first: values are wrong: $?"
        ! command -v $second >/dev/null || quiet "$1 by $second" $second $options -fsyntax-only "$scratch"/src/*.$language
    done
}

: "${TRUNKLINE_TEST_CC:=gcc}"
[ "${1:-}" != --update ] || update
for name in $(came | sort -u); do
    fail "$name is in missing.txt and is there: run tests/interface/surface.sh --update"
done
for name in $(awk -F ' [|] ' '!/^#/ { print $1 }' "$missing"); do
    grep -q -e "^$name |" -e " | $name | " "$here/names.txt" || fail "$name is in missing.txt and not in names.txt"
done
for name in $(awk -F ' [|] ' '!/^#/ && !seen[$3]++ { print $3 }' "$here/names.txt"); do
    [ -f "$top_srcdir/conduit/include/$name" ] || listed "$name" || fail "there is no $name"
done
for mode in SEQ PARSYNC PAR; do
    mode $mode
done

echo "$checked uses of names compiled in silence; $(grep -vc '^#' "$missing") names and headers are missing"
[ "$checked" -gt 3000 ] || fail "that is too few"
finish
