#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The shared libraries export the public names, all of them and nothing else, under a symbol version; the archives are
# position independent and keep to our prefixes; the identification strings that launchers look for are inside.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch
public='^(gex_|gasnet_|gasnett_|trunkline_|_gasneti_threadkey_init$|_gasnett_trace_printf_noop$)'

# Names of functions and variables that the headers declare without defining them. gcc prints every declaration it has
# seen; the letter behind the line number is C (declared) or F (defined, here: inline).
declared()
{
    # shellcheck disable=SC2059 # lines to include
    printf "$2" >"$scratch/all.c"
    gcc -std=c11 -D_GNU_SOURCE=1 "$3" "-I$incdir" "-I$incdir/ibv-conduit" -fsyntax-only \
        -aux-info "$scratch/all.x" "$scratch/all.c" || return 1
    grep -F "$incdir" "$scratch/all.x" | grep -E ':[0-9]+:.C \*/' |
        grep -oE '\b(gex|gasnet|gasnett|trunkline|_gasneti|_gasnett)_[A-Za-z0-9_]+ \(' | tr -d ' (' | sort -u
    grep -q gasnetex.h "$scratch/all.c" && printf '%s\n' gasnet_max_segsize_str gasnet_max_segsize gasnet_client_attach_hook
    printf '%s\n' gasnet_frozen gasnett_backtrace_user gasnett_print_backtrace_ifenabled
}

exported()
{
    nm -D --defined-only "$1" | awk '{print $NF}' | sed 's/@.*//' | grep -v '^TRUNKLINE_' | sort -u
}

# check_shared LIBRARY "lines to include" MODE-OPTION LEAST
check_shared()
{
    [ "$shared" = yes ] || return
    lib=$libdir/lib$1.so
    exported "$lib" >"$scratch/exported"
    grep -vE "$public" "$scratch/exported" && fail "$lib exports these"
    declared "$1" "$2" "$3" | sort -u >"$scratch/declared"
    [ "$(wc -l <"$scratch/declared")" -gt "$4" ] || fail "only $(wc -l <"$scratch/declared") declarations found in the headers"
    comm -23 "$scratch/declared" "$scratch/exported" >"$scratch/missing"
    [ ! -s "$scratch/missing" ] || { cat "$scratch/missing"; fail "declared in the headers, but not in $lib"; }
    nm -D --defined-only "$lib" | grep -E " (gex|gasnett?)_" | grep -v '@@TRUNKLINE_' | head -3 | grep . &&
        fail "$lib exports symbols without a version"
    readelf -d "$lib" | grep -q TEXTREL && fail "$lib has text relocations"
    readelf -d "$lib" | grep -q "SONAME.*lib$1\.so\.[0-9]" || fail "$lib has no versioned soname"
}

check_archive()
{
    [ "$static" = yes ] || return
    lib=$libdir/lib$1.a
    nm --defined-only -g "$lib" 2>/dev/null | awk 'NF == 3 {print $3}' | grep -vE "$public|^tk_|^__(asan|ubsan|odr_asan)" |
        sort -u | grep . && fail "$lib defines these global names"
    # A client links the archive into its own shared object, which needs position independent code.
    gcc -shared -Wl,-z,text -Wl,--whole-archive "$lib" -Wl,--no-whole-archive -o "$scratch/client.so" 2>"$scratch/err" || {
        head -3 "$scratch/err"
        fail "$lib does not go into a shared object"
    }
}

check_strings()
{
    lib=$libdir/libgasnet-ibv-$1.a
    [ "$static" = yes ] || lib=$libdir/libgasnet-ibv-$1.so
    mode=$(upper "$1")
    tools_mode=PAR
    [ "$mode" != SEQ ] || tools_mode=SEQ
    for text in 'GASNetConduitName: IBV' "GASNetThreadModel: GASNET_$mode" 'GASNetSSHSpawner: 1' 'GASNetMPISpawner: 1' 'GASNetPMISpawner: 1' 'GASNetEXAPIVersion: 0.19' \
        'GASNetAPIVersion: 1' 'GASNetSegment: GASNET_SEGMENT_FAST' 'GASNetCoreLibraryName: IBV' 'GASNetExtendedLibraryName: IBV' \
        'GASNetDefaultMaxSegsizeStr: 0.85/H' "GASNetToolsThreadModel: $tools_mode"; do
        grep -aqF "\$$text \$" "$lib" || fail "$lib does not contain \$$text \$"
    done
    grep -aoE '[$]GASNetConfig: [^$]*[$]' "$lib" | grep -qE ',pshm,.*,timers_native,membars_native,atomics_native[, ]' ||
        fail "$lib: the configuration does not say pshm, timers_native, membars_native and atomics_native"
    for text in 'GASNetConfig: (libgasnet.a) RELEASE=2025.8.0,SPEC=0.19,CONDUIT=IBV(IBV-2.17/IBV-2.15),' 'GASNetToolsConfig: (libgasnet.a) RELEASE=2025.8.0,' 'GASNetCoreLibraryVersion: 2.17' \
        'GASNetExtendedLibraryVersion: 2.15' 'GASNetAMMaxMedium: 6' 'GASNetSystemTuple: ' 'GASNetBuildId: '; do
        grep -aqE "[$]$(echo "$text" | sed 's/[().]/[&]/g')[^$]* [$]" "$lib" || fail "$lib does not contain \$$text ... \$"
    done
}

for mode in $modes; do
    check_shared "gasnet-ibv-$mode" '#include <gasnetex.h>\n#include <trunkline_query.h>\n#include <trunkline_rails.h>\n#include <gasnet_tools.h>\n' \
        "-DGASNET_$(upper "$mode")" 150
    check_archive "gasnet-ibv-$mode"
    check_strings "$mode"
done
for mode in seq par; do
    check_shared "gasnet_tools-$mode" '#include <gasnet_tools.h>\n' -DGASNETT_USE_TRUE_MUTEXES=1 60
    check_archive "gasnet_tools-$mode"
    tells=no
    for lib in "$libdir/libgasnet_tools-$mode".[as]*; do
        grep -aqF "\$GASNetToolsThreadModel: $(upper "$mode") \$" "$lib" && tells=yes
    done
    [ $tells = yes ] || fail "libgasnet_tools-$mode does not tell its thread model"
done
finish
