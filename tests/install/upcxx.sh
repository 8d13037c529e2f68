#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks what configure and the build of UPC++ require of the folder that --enable-single=opt
# --with-gasnet=PREFIX/include names: version numbers as text, a build tree's make and
# config.status, fragments, and numbers that the preprocessor prints, where the compiler takes the
# headers for the system's too. clients.sh compiles and runs a client with the same fragments.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch
ln -s "$incdir" "$scratch/gasnet.opt" || exit 1

# The first line with the name has the number behind a blank.
said()
{
    sed -n "/EX_SPEC_VERSION_$1/{s/^[^ ]* [^ ]* \([0-9][0-9]*\)\$/\1/p;q;}" "$scratch/gasnet.opt/gasnet_config.h"
}

# preprocessed COMPILER INCLUDES EXPRESSION: the text between two marks, including the
# preprocessor's line markers
# shellcheck disable=SC2086 # lists of options
preprocessed()
{
    printf '#include <gasnetex.h>\n#include <gasnet_tools.h>\n#include <gasnet_portable_platform.h>\nbefore+%s+after\n' "$3" >"$scratch/probe.c"
    language=c
    case $1 in *++) language=c++ ;; esac
    "$1" -x $language $2 -DGASNET_SEQ -D_GNU_SOURCE=1 -E "$scratch/probe.c" | sed -n '/^before/,/after/p' | sed -e 's/^before *+ *//' -e 's/ *+ *after$//'
}

includes="-I$incdir -I$incdir/ibv-conduit"
for compiler in gcc g++ clang clang++; do
    command -v $compiler >/dev/null || continue
    # gcc marks tokens of a system header's macros by lines of their own; -isystem makes them that, as a folder that gcc searches by
    # itself does, and the -I of the same folder is ignored then.
    for place in "" "-isystem $incdir"; do
        for name in GASNET_MAXEPS GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM GASNET_HIDDEN_AM_CONCURRENCY_LEVEL; do
            preprocessed $compiler "$place $includes" $name | grep -Eqx '[0-9]+' ||
                fail "$compiler $place: $name is '$(preprocessed $compiler "$place $includes" $name)', not a number"
        done
        family=$(preprocessed $compiler "$place $includes" PLATFORM_COMPILER_FAMILYNAME)
        case $compiler:$family in g*:GNU | clang*:CLANG) ;; *) fail "$compiler $place: family '$family'" ;; esac
    done
done
for part in MAJOR MINOR; do
    [ -n "$(said $part)" ] || fail "gasnet_config.h: no number behind EX_SPEC_VERSION_$part"
    [ "$(preprocessed gcc "$includes" GEX_SPEC_VERSION_$part)" = "$(said $part)" ] || fail "gasnet_config.h and GEX_SPEC_VERSION_$part differ"
done

# The make targets that UPC++ calls
[ "$(plain_make -C "$scratch/gasnet.opt" echovar VARNAME=CONDUITS | grep -v '^make')" = 'CONDUITS="ibv"' ] || fail "echovar"
plain_make -C "$scratch/gasnet.opt" all >/dev/null || fail "make all"
for mode in seq par; do
    plain_make -C "$scratch/gasnet.opt/ibv-conduit" "ibv-$mode.mak" >/dev/null || fail "make ibv-$mode.mak"
done
plain_make -C "$scratch/gasnet.opt" install prefix=/upcxx/gasnet.opt "DESTDIR=$scratch" >/dev/null || fail "make install"
[ -x "$scratch/upcxx/gasnet.opt/bin/gasnetrun_ibv" ] || fail "make install: no launcher where upcxx-run looks"
[ -r "$scratch/upcxx/gasnet.opt/include/ibv-conduit/ibv-seq.mak" ] || fail "make install: no fragment"
plain_make -C "$scratch/gasnet.opt" install >"$scratch/out" 2>&1 && fail "make install without prefix"
grep -q 'say prefix=DIRECTORY' "$scratch/out" || fail "make install without prefix says '$(cat "$scratch/out")'"

# The config.status calls of UPC++
cat >"$scratch/template" <<'TEMPLATE'
tools = @PERL@ @AR@
CONDUITS = @CONDUITS@
suffix = (@EXESUFFIX@)
families = @CC_FAMILY@ @CXX_FAMILY@ @CC_SUBFAMILY@ @CXX_SUBFAMILY@
threads = @GASNET_THREAD_DEFINES@ @GASNET_THREAD_LIBS@
mail = a@b.c @ @@
TEMPLATE
asked="CONFIG_COMMANDS= CONFIG_LINKS= CONFIG_HEADERS= CONFIG_FILES=$scratch/filled:$scratch/template"
# shellcheck disable=SC2086 # variables
(cd "$scratch/gasnet.opt" && env $asked ./config.status) >"$scratch/out" 2>&1 || fail "config.status"
[ -s "$scratch/out" ] && fail "config.status prints $(head -n 1 "$scratch/out")"
for line in 'CONDUITS = ibv' 'suffix = ()' 'threads = -D_REENTRANT -lpthread' 'mail = a@b.c @ @@'; do
    grep -qxF "$line" "$scratch/filled" || fail "config.status: no line '$line' but $(cat "$scratch/filled")"
done
grep -Eqx 'families = [A-Z]+ [A-Z]+ [a-z]+ [a-z]+' "$scratch/filled" || fail "config.status: $(grep families "$scratch/filled")"
echo 'CONDUITS = @CONDUITS@' | "$incdir/config.status" --file=-:- | grep -qx 'CONDUITS = ibv' || fail "config.status --file"
[ -n "$("$incdir/config.status" --version)" ] || fail "config.status --version"
"$incdir/config.status" --config >/dev/null || fail "config.status --config"
echo '@NOBODY@' | "$incdir/config.status" --file=-:- 2>&1 >/dev/null | grep -q 'asks for @NOBODY@' || fail "config.status: an unknown name in silence"
for wrong in --recheck --file=-:/nowhere ""; do
    # shellcheck disable=SC2086 # nothing is a case
    env -u CONFIG_FILES "$incdir/config.status" $wrong >"$scratch/out" 2>&1
    [ $? -eq 2 ] && [ "$(wc -l <"$scratch/out")" -eq 1 ] || fail "config.status $wrong: not status 2 and one line"
done
finish
