#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# System headers that clients do not include themselves because public headers have always included them: one use of each system
# header, in C and
# C++, behind one public header alone. Headers whose names come later exist and bring gasnetex.h. gasnetex.h alone has the two
# private macros that clients use.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch
includes="-I$incdir -I$incdir/ibv-conduit -D_GNU_SOURCE=1 -DGASNET_PAR -D_REENTRANT"

# uses HEADER FILE: HEADER and one function for each of what it brings
few='int few(int n, char **v);
int few(int n, char **v)
{
    char *text = (char *)malloc((size_t)n); /* stdlib */
    printf("%s", v[0]); /* stdio */
    free(text);
    return n < INT_MAX ? (int)getpid() : abs(n); /* limits, unistd */
}'
many='int many(int n, const char *format, ...);
int many(int n, const char *format, ...)
{
    char text[PATH_MAX], *more = (char *)alloca((size_t)n); /* limits, sys/param; alloca comes with stdlib */
    va_list list; /* stdarg */
    ssize_t length; /* sys/types */
    uint64_t number = UINT64_C(1);
    va_start(list, format);
    length = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    memcpy(more, text, MIN((size_t)n, strlen(text) + 1)); /* string, sys/param */
    if (isdigit((unsigned char)text[0]) && errno == EINTR) /* ctype, errno */
        signal(SIGUSR1, SIG_IGN); /* signal */
    printf("%" PRIu64 " %" PRIxPTR "\n", number, (uintptr_t)more); /* inttypes */
    return (int)length + (int)roundup(n, 8) + (int)howmany(n, 8);
}'
private='int pasted(void);
int pasted(void)
{
    int _CONCAT(a, b) = _STRINGIFY(GASNET_CONDUIT_IBV)[0];
    return ab;
}'
barrier='void arrive(gex_TM_t tm);
void arrive(gex_TM_t tm)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}'

# shellcheck disable=SC2086 # lists of options
compiles()
{
    label=$1
    shift
    printf '%s\n' "$@" >"$scratch/client.c"
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        $compiler -std=c11 -Werror=implicit -Wall -Wextra $includes -fsyntax-only "$scratch/client.c" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ] ||
            { head -5 "$scratch/out"; fail "$compiler: $label"; }
    done
    for compiler in g++ clang++; do
        command -v $compiler >/dev/null || continue
        $compiler -x c++ -std=c++11 -Wall -Wextra $includes -fsyntax-only "$scratch/client.c" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ] ||
            { head -5 "$scratch/out"; fail "$compiler: $label"; }
    done
}

compiles gasnetex.h '#include <gasnetex.h>' "$few" "$many" "$private" "$barrier"
compiles gasnet.h '#include <gasnet.h>' "$few" "$many" "$private" "$barrier"
compiles gasnet_tools.h '#include <gasnet_tools.h>' "$few"
for header in gasnet_coll.h gasnet_vis.h gasnet_ratomic.h gasnet_mk.h; do
    compiles $header "#include <$header>" "$barrier"
done
compiles gasnet_core.h '#include <gasnet_core.h>' "$barrier"
compiles "a client's own MIN and MAX" '#define MIN(a, b) mine' '#define MAX(a, b) mine' '#include <gasnet.h>' \
    'int own(int mine);' 'int own(int mine)' '{' '    return MIN(1, 2) + MAX(1, 2);' '}'

# Not more than these: each header more takes names from clients. bits, asm and the like belong to the system's own.
echo '#include <gasnetex.h>' >"$scratch/alone.c"
# shellcheck disable=SC2086 # lists of options
brought=$(gcc -std=c11 -M -D_GNU_SOURCE=1 -DGASNET_SEQ "-I$incdir" "-I$incdir/ibv-conduit" "$scratch/alone.c" | tr -s ' \\' '\n' |
    sed -n -e "\\,^$incdir,d" -e 's#^/usr/include/\([a-z_0-9-]*-linux-gnu[a-z0-9]*/\)\{0,1\}##p' | grep -E '^(sys/)?[a-z]+[.]h$' | sort -u)
known=$(printf '#include <%s>\n' stdio.h stdlib.h stdarg.h string.h ctype.h inttypes.h limits.h errno.h signal.h unistd.h sys/types.h sys/param.h |
    gcc -std=c11 -M -D_GNU_SOURCE=1 -x c - | tr -s ' \\' '\n' |
    sed -n 's#^/usr/include/\([a-z_0-9-]*-linux-gnu[a-z0-9]*/\)\{0,1\}##p' | grep -E '^(sys/)?[a-z]+[.]h$' | sort -u)
[ "$brought" = "$known" ] || fail "gasnetex.h brings: $(echo "$brought" | paste -sd ' '); it is to bring: $(echo "$known" | paste -sd ' ')"
finish
