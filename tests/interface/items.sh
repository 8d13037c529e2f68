#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Headers where implementations of this interface have broken the builds of clients: items 70 to 75 of tests/rules.md.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
warnings="-Wall -Wextra -pedantic -Werror -D_GNU_SOURCE=1 -fsyntax-only"

# quiet ITEM OPTIONS... FILE: compiles in silence, C by gcc and clang, C++ by g++ and clang++
# shellcheck disable=SC2086 # lists of options
quiet()
{
    item=$1
    shift
    for compiler in gcc clang g++ clang++; do
        command -v $compiler >/dev/null || continue
        language=c
        case $compiler in *++) language=c++ ;; esac
        $compiler -x $language $warnings $include "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ] && continue
        head -5 "$scratch/out"
        fail "item $item, $compiler"
    done
}

# macros OPTIONS...: all macros that the headers define, without those of the system's headers
# shellcheck disable=SC2086 # lists of options
macros()
{
    for header in "$top_srcdir"/conduit/include/*.h; do
        case ${header##*/} in gasnet_tools.h) ;; *) echo "#include <${header##*/}>" ;; esac
    done >"$scratch/all.c"
    echo '#include <gasnet_tools.h>' >>"$scratch/all.c"
    gcc -E -dM $include "$@" "$scratch/all.c"
}

feature='GASNET_(HAVE|SUPPORTS|NATIVE|CONDUIT|SEGMENT|TRACE$|STATS$|PSHM$|DEBUG$|NDEBUG$|SEQ$|PAR$|PARSYNC$|SRCLINES$|IBV_MULTIRAIL$)'
feature="^($feature|GASNETT_(HAVE|THREAD_SAFE|THREAD_SINGLE|LITE_MODE)|PLATFORM_(OS|ARCH|COMPILER)_)"
no_feature='FAMILYNAME|_CONDUIT_NAME|FAMILYID|_VERSION|LANGLVL|_ID$|_IDSTR$|AM_CANCEL$|AM_COMMIT_V2$' # the last two: dates

item_70()
{
    for mode in SEQ PARSYNC PAR; do
        macros -DGASNET_$mode | awk -v feature="$feature" -v other="$no_feature" '
            $2 ~ feature && $2 !~ other { count++; if ($3 != 1 || NF != 3) print $2 " is \"" $3 "\"" }
            END { if (count < 20) print "only " count + 0 " feature macros found" }' >"$scratch/wrong"
        [ ! -s "$scratch/wrong" ] || fail "item 70: feature macros are 1 or undefined; in $mode $(cat "$scratch/wrong")"
    done
}

item_71()
{
    printf '#include <gasnetex.h>\nGASNETT\nint gex_Client_Init(gex_Client_t *c, gex_EP_t *e, gex_TM_t *t, const char *n, int *ac, char ***av, gex_Flags_t f);\n' |
        sed 's/^GASNETT$/#ifdef __cplusplus\nextern "C"\n#endif/' >"$scratch/71.c"
    quiet "71: a client may declare gex_Client_Init once more" -DGASNET_PAR "$scratch/71.c"
}

# shellcheck disable=SC2086 # lists of options
item_72()
{
    printf '#include <gasnetex.h>\n#if defined(GASNET_DEBUG) == defined(GASNET_NDEBUG)\n#error "not exactly one"\n#endif\nextern int x;\n' >"$scratch/72.c"
    quiet "72: one of GASNET_DEBUG and GASNET_NDEBUG" -DGASNET_SEQ "$scratch/72.c"
    for client in GASNET_DEBUG GASNET_NDEBUG; do
        quiet "72: whatever the client says" -DGASNET_SEQ -D$client "$scratch/72.c"
    done
    mkdir "$scratch/debug"
    sed 's/GASNET_NDEBUG 1/GASNET_DEBUG 1/' "$top_builddir/conduit/include/gasnet_config.h" >"$scratch/debug/gasnet_config.h"
    quiet "72: a debug library" -DGASNET_SEQ "-I$scratch/debug" "$scratch/72.c" 2>&1
    for option in -O1 -DNDEBUG; do
        gcc "-I$scratch/debug" $include -DGASNET_SEQ $option -fsyntax-only "$scratch/72.c" 2>&1 | grep -q "without optimisation" ||
            fail "item 72: a debug library takes a client with $option"
    done
}

# A macro that reads as a call evaluates each argument once: its expansion names each argument once.
# Except macros whose argument is a piece of syntax, and the few that follow C's own example:
# assertions that are off, MIN and MAX, conditions that are waited for, hints about what the
# compiler may assume.
no_call='^(TRUNKLINE_|PLATFORM_|GEX_HSL|GASNETT?_(BEGIN|GET_THREAD|POST_THREAD|INLINE|NEVER_INLINE|FORMAT|NORETURN|MALLOCP|PUREP|CONSTP|UNUSED|IDENT|THREADKEY|TRACE|STATS))'
no_call="$no_call"'|_init$|^gasnett_threadkey_|^_(STRINGIFY|CONCAT)|_HELPER$|^(if_p[ft]|MIN|MAX|gasneti_assert|gasnett_assume|gasnett_unreachable|gasnett_constant_p|GASNET_BLOCKUNTIL)$'
# shellcheck disable=SC2086 # lists of options
item_73()
{
    for mode in SEQ PAR; do
        macros -DGASNET_$mode -D_GNU_SOURCE=1 | sed -nE 's/^#define ((gex|gasnett?|gasneti?|GASNETT?|GASNETI|GEX)_[A-Za-z0-9_]+)\(([^)]*)\).*/\1 \3/p' |
            awk -v not="$no_call" '$1 !~ not { name = $1; $1 = ""; gsub(/ /, ""); n = $0 == "" ? 0 : split($0, parameter, ",")
                if (parameter[n] == "...") n = n == 1 ? of_message(name) : n + 2
                call = ""
                for (i = 1; i <= n; i++) call = call (i > 1 ? ", " : "") "marker" i "_"
                print "@CALL " name " " n "\n" name "(" call ")"
            }
            # The old calls take everything as "...": token or rank, handler, payload, then the arguments of the handler.
            function of_message(name,  args) {
                args = name; gsub(/[^0-9]/, "", args)
                return (name ~ /Short/ ? 2 : name ~ /Medium/ ? 4 : 5) + (args == "" ? 2 : args)
            }' >"$scratch/73.txt"
        { cat "$scratch/all.c"; cat "$scratch/73.txt"; } >"$scratch/73.c"
        gcc -E -P $include -DGASNET_$mode -D_GNU_SOURCE=1 "$scratch/73.c" 2>"$scratch/err" | awk '
            function judge(  i, text) {
                if (name == "") return
                calls++
                for (i = 1; i <= n; i++) {
                    text = body
                    if (gsub("marker" i "_", "", text) != 1) print name ", argument " i
                }
            }
            /^@CALL/ { judge(); name = $2; n = $3; body = ""; next }
            { body = body " " $0 }
            END { judge(); if (calls < 100) print "only " calls + 0 " macros found" }' >"$scratch/wrong"
        [ ! -s "$scratch/wrong" ] || fail "item 73: evaluated never or twice in $mode: $(tr '\n' ';' <"$scratch/wrong")"
    done
}

item_74()
{
    cat >"$scratch/74.c" <<'SOURCE'
#include <gasnetex.h>
int item(gex_TM_t tm, void *p, gex_Token_t token);
int item(gex_TM_t tm, void *p, gex_Token_t token)
{
    gex_Event_t *now = GEX_EVENT_NOW, *defer = GEX_EVENT_DEFER, *group = GEX_EVENT_GROUP;
    gex_Event_t event = gex_RMA_PutNB(tm, 0, p, p, 1, GEX_EVENT_NOW, 0);
    gex_Event_t (*put)(gex_TM_t, gex_Rank_t, void *, const void *, size_t, gex_Event_t *, gex_Flags_t) = gex_RMA_PutNB;
    int (*nbi)(gex_TM_t, gex_Rank_t, void *, const void *, size_t, gex_Event_t *, gex_Flags_t) = gex_RMA_PutNBI;
    event = put(tm, 0, p, p, 1, defer, 0);
    (void)nbi(tm, 0, p, p, 1, group, GEX_FLAG_IMMEDIATE);
    (void)gex_AM_RequestMedium0(tm, 0, 200, p, 1, now, 0);
    (void)gex_AM_RequestLong1(tm, 0, 200, p, 1, p, &event, 0, 1);
    (void)gex_AM_ReplyMedium(token, 200, p, 1, GEX_EVENT_NOW, 0, 1, 2);
    (void)gex_AM_PrepareRequestMedium(tm, 0, 0, 1, 1, 0, 0, 0);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, 0, 0, 0, 0, 0));
    return gex_Event_Test(event);
}
SOURCE
    quiet "74: NULL, 0 and GEX_EVENT_NOW as arguments" -DGASNET_PAR "$scratch/74.c"
}

item_75()
{
    cat >"$scratch/75.c" <<'SOURCE'
#include <gasnetex.h>
static gex_HSL_t one = GEX_HSL_INITIALIZER;
int item(int number);
int item(int number)
{
    gex_HSL_t two;
    int (*trylock)(gex_HSL_t *) = gex_HSL_Trylock;
    void (*unlock)(gex_HSL_t *) = &gex_HSL_Unlock;
    gex_HSL_Init(&two);
    if (number) gex_HSL_Lock(&one); else gex_HSL_Lock(&two);
    if (trylock(&one) == GASNET_OK) unlock(&one);
    gex_HSL_Destroy(&two);
    return 0;
}
SOURCE
    for mode in SEQ PARSYNC PAR; do
        quiet "75: locks as statements and by address, $mode" -DGASNET_$mode "$scratch/75.c"
    done
}

for item in 70 71 72 73 74 75; do
    item_$item
done
echo "items 70 to 75"
finish
