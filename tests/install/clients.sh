#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Does with an installed copy what the build systems of known clients do: read fragments and packages as text, take flags out of
# them, look for each library, grep the configuration; then build the same client with just that, and run it.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: clients of a library with sanitizers are built with the same ones"
    exit 77
fi
make_scratch
cp "$here/client.c" "$here/forms.h" "$scratch/"

# All of the make fragments and packages that clients read
variables="GASNET_PREFIX GASNET_CC GASNET_CXX GASNET_LD GASNET_CFLAGS GASNET_OPT_CFLAGS GASNET_MISC_CFLAGS GASNET_CPPFLAGS
    GASNET_MISC_CPPFLAGS GASNET_DEFINES GASNET_INCLUDES GASNET_CXXFLAGS GASNET_CXXCPPFLAGS GASNET_OPT_CXXFLAGS
    GASNET_MISC_CXXFLAGS GASNET_MISC_CXXCPPFLAGS GASNET_DEVWARN_CFLAGS GASNET_DEVWARN_CXXFLAGS GASNET_LDFLAGS GASNET_LIBS
    GASNET_LIBDIRS GASNET_EXTRADEFINES_SEQ GASNET_EXTRADEFINES_PAR GASNET_EXTRADEFINES_PARSYNC GASNET_EXTRALIBS_SEQ
    GASNET_EXTRALIBS_PAR GASNET_EXTRALIBS_PARSYNC GASNET_SPAWNER_DEFAULT
    GASNET_SPAWNER_PMI GASNET_SPAWNER_MPI GASNET_SPAWNER_SSH"
tools_variables="GASNETTOOLS_CC GASNETTOOLS_CFLAGS GASNETTOOLS_CPPFLAGS GASNETTOOLS_CXX GASNETTOOLS_CXXFLAGS GASNETTOOLS_LD
    GASNETTOOLS_LDFLAGS GASNETTOOLS_LIBS GASNETTOOLS_INCLUDES GASNETTOOLS_LIBDIR GASNETTOOLS_THREADFLAGS GASNETTOOLS_TOOLLIB_NAME"

# says_all FRAGMENT PACKAGE NAMES: both know each name, and the fragment is plain POSIX make
says_all()
{
    pc --print-variables "$2" >"$scratch/names"
    for name in $3; do
        grep -q "^$name *=" "$1" || fail "$1 does not know $name"
        grep -qx "$name" "$scratch/names" || fail "$2.pc does not know $name"
    done
    # shellcheck disable=SC2016 # no shell, no GNU make, no nested expansion
    grep -nE '`|\$\(shell|\$\([a-z]+ |:=|\?=|\+=|^ *(ifdef|ifndef|ifeq|ifneq|define|include)|\$\$' "$1" && fail "$1 is more than assignments"
    pc --cflags --libs "$2" | grep '[$`()]' && fail "$2.pc leaves something to a shell"
}

# spawners FRAGMENT PACKAGE: both list all three spawners, and the default is the launcher's, which
# may be called local
spawners()
{
    for spawner in SSH MPI PMI; do
        grep -qx "GASNET_SPAWNER_$spawner = 1" "$1" || fail "$1 does not know the spawner $spawner"
        [ "$(pc --variable=GASNET_SPAWNER_$spawner "$2")" = 1 ] || fail "$2.pc does not know the spawner $spawner"
    done
    default=$("$bindir/gasnetrun_ibv" --settings | sed -n '/^GASNET_IBV_SPAWNER/{n;s/.*default \([a-z]*\).*/\1/p}' | sed 's/local/ssh/')
    [ -n "$default" ] || fail "the launcher has no default of GASNET_IBV_SPAWNER"
    [ "$(pc --variable=GASNET_SPAWNER_DEFAULT "$2")" = "$default" ] || fail "$2.pc: the default spawner is not $default"
    grep -qx "GASNET_SPAWNER_DEFAULT = $default" "$1" || fail "$1: the default spawner is not $default"
}

# only_if_true FRAGMENT PACKAGE: clients test these with ifdef, and then link with mpicxx or g++
# regardless of the value
only_if_true()
{
    for name in GASNET_LD_REQUIRES_MPI GASNET_LD_REQUIRES_CXX; do
        grep -q "^$name" "$1" && fail "$1 defines $name"
        pc --print-variables "$2" | grep -qx $name && fail "$2.pc defines $name"
    done
    printf 'include %s\nifdef GASNET_LD_REQUIRES_MPI\nLD = mpicxx\nelse ifdef GASNET_LD_REQUIRES_CXX\nLD = $(GASNET_CXX)\nelse\nLD = $(GASNET_LD)\nendif\nshow:\n\t@echo $(LD)\n' \
        "$1" >"$scratch/ifdef.make"
    ld=$(plain_make -f "$scratch/ifdef.make" show)
    [ "$ld" = "$(pc --variable=GASNET_LD "$2")" ] || fail "$1: a client that asks by ifdef links with $ld"
}

# optimised FRAGMENT PACKAGE FLAGS: GASNET_CFLAGS and _CXXFLAGS of the fragment begin with FLAGS;
# GASNET_OPT_CFLAGS and _CXXFLAGS are exactly FLAGS; no other variable has optimisation flags
optimised()
{
    cat >"$scratch/opt.make" <<MAKE
include $1
show:
	@echo \$(GASNET_OPT_CFLAGS)
	@echo \$(GASNET_OPT_CXXFLAGS)
	@echo \$(GASNET_CFLAGS) -Dend
	@echo \$(GASNET_CXXFLAGS) -Dend
	@echo rest \$(GASNET_MISC_CFLAGS) \$(GASNET_MISC_CXXFLAGS) \$(GASNET_CPPFLAGS) \$(GASNET_CXXCPPFLAGS) \$(GASNET_LDFLAGS) \$(GASNET_LIBS)
MAKE
    plain_make -f "$scratch/opt.make" MANUAL_CFLAGS=-O1 MANUAL_CXXFLAGS=-O1 show >"$scratch/opt"
    [ "$(sed -n 1p "$scratch/opt")|$(sed -n 2p "$scratch/opt")" = "$3|$3" ] || fail "$1: GASNET_OPT_CFLAGS and _CXXFLAGS are '$(head -2 "$scratch/opt")', not '$3'"
    for flags in "$(sed -n 3p "$scratch/opt")" "$(sed -n 4p "$scratch/opt")"; do
        case $flags in "$3"*"-O1 -Dend") ;; *) fail "$1: flags are '$flags': not '$3' first and the client's last" ;; esac
    done
    for text in "$(sed -n 5p "$scratch/opt")" "$(cat "$libdir/pkgconfig/$2.pc" "$libdir/cmake/Trunkline/TrunklineConfig.cmake")"; do
        echo "$text" | grep -E -e '(^|[ ="])-O([0-9sgz ]|$)' && fail "$1, $2.pc or CMake: optimisation outside of GASNET_CFLAGS and GASNET_CXXFLAGS"
    done
}

# runs LABEL PROGRAM [variables]: as a job of two
runs()
{
    label=$1 program=$2
    shift 2
    timeout -k 5 60 env LD_LIBRARY_PATH= "$@" "$bindir/gasnetrun_ibv" -n 2 "$program" >"$scratch/out" 2>"$scratch/err"
    if [ "$(sort "$scratch/out")" != "rank 0 of 2: ok
rank 1 of 2: ok" ]; then
        head -5 "$scratch/out" "$scratch/err"
        fail "$label: $program does not run"
    fi
}

# A find module: gasnet.h in the include directory, then the fragments beside it; a makefile that includes one and prints;
# every -l looked for in every -L.
# shellcheck disable=SC2046,SC2086 # lists of options
realm()
{
    [ -f "$incdir/gasnet.h" ] || fail "Realm: no gasnet.h"
    fragment=$(ls "$incdir"/*-conduit/*-par.mak)
    printf 'include %s\nprint:\n' "$fragment" >"$scratch/realm.make"
    for name in CC CPPFLAGS CFLAGS CXX CXXCPPFLAGS CXXFLAGS LD LDFLAGS LIBS LD_REQUIRES_MPI; do
        printf '\t@echo %s=$(GASNET_%s)\n' $name $name >>"$scratch/realm.make"
    done
    plain_make -f "$scratch/realm.make" "GASNET_PREFIX=$prefix" print >"$scratch/flags"
    said() { sed -n "s/^$1=//p" "$scratch/flags"; }
    [ -z "$(said LD_REQUIRES_MPI)" ] || fail "Realm: LD_REQUIRES_MPI"
    found=
    for word in $(said LIBS); do
        case $word in -l*) ;; *) continue ;; esac
        file=$(library "${word#-l}" $(said LIBS))
        [ -n "$file" ] || fail "Realm: $word is nowhere"
        found="$found $file"
    done
    cat >"$scratch/version.cc" <<'SOURCE'
#include <gasnetex.h>
#if GASNET_RELEASE_VERSION_MAJOR < 2020 || GEX_SPEC_VERSION_MAJOR != 0 || !defined(GASNET_CONDUIT_IBV) || !GASNET_PAR
#    error "not what it should be"
#endif
SOURCE
    $(said CXX) $(said CXXCPPFLAGS) $(said CXXFLAGS) -fsyntax-only "$scratch/version.cc" || fail "Realm: versions"
    $(said CC) $(said CPPFLAGS) $(said CFLAGS) -c "$scratch/client.c" -o "$scratch/realm.o" &&
        $(said CXX) $(said LDFLAGS) "$scratch/realm.o" $found -lpthread -o "$scratch/realm" && runs Realm "$scratch/realm"
}

# library NAME LIBS...: the file that -lNAME means
library()
{
    name=$1
    shift
    for word in "$@"; do
        case $word in -L*) ;; *) continue ;; esac
        for file in "${word#-L}/lib$name.so" "${word#-L}/lib$name.a"; do
            [ ! -e "$file" ] || { echo "$file"; return; }
        done
    done
    for file in "lib$name.so" "lib$name.a"; do
        file=$(gcc "-print-file-name=$file")
        case $file in /*) echo "$file"; return ;; esac
    done
}

# A makefile of its own in front of the fragment of its choice, in SEQ and PAR, C++; strings in the libraries; the launcher
# by its network's name
upcxx()
{
    for mode in seq par; do
        cat >"$scratch/upcxx.make" <<MAKE
include \$(GASNET_CONDUIT_FRAGMENT)
upcxx-$mode:
	\$(GASNET_CXX) -std=c++17 \$(GASNET_CXXCPPFLAGS) \$(GASNET_CXXFLAGS) -x c++ -c client.c -o upcxx.o
	\$(GASNET_CXX) \$(GASNET_LDFLAGS) upcxx.o \$(GASNET_LIBS) -o \$@
MAKE
        GASNET_CONDUIT_FRAGMENT=$incdir/ibv-conduit/ibv-$mode.mak plain_make -C "$scratch" -f upcxx.make "GASNET_PREFIX=$prefix" \
            "MANUAL_LDFLAGS=-Wl,-O1" MANUAL_CXXFLAGS=-g >"$scratch/log" 2>&1 || { tail -3 "$scratch/log"; fail "UPC++: ibv-$mode.mak"; continue; }
        grep -q -e 'std=c++17.* -g ' "$scratch/log" || fail "UPC++: MANUAL_CXXFLAGS do not arrive"
        grep -q -e '-Wl,-O1' "$scratch/log" || fail "UPC++: MANUAL_LDFLAGS do not arrive"
        runs UPC++ "$scratch/upcxx-$mode"
        for file in "$libdir/libgasnet-ibv-$mode".[as]*; do
            case $file in *.la) continue ;; esac
            # shellcheck disable=SC2016 # dollars as text
            grep -aqF '$GASNetThreadModel: GASNET_'"$(upper $mode) \$" "$file" || fail "UPC++: $file does not tell its thread model"
        done
    done
    [ -x "$bindir/gasnetrun_ibv" ] || fail "UPC++: no launcher"
}

# An installer: variables of the package, lines of the configuration, and whether the compiler is the library's
# shellcheck disable=SC2046,SC2086 # lists of options
caffeine()
{
    var() { pc "--variable=GASNET_$1" gasnet-ibv-seq; }
    for line in '#define GASNETI_RELEASE_VERSION 2025.8.0' '#define GASNETI_BUILD_ID "' '#define GASNETI_CONFIGURE_ARGS "' \
        '#define GASNET_RELEASE_VERSION_MAJOR 2025' '#define GASNET_RELEASE_VERSION_MINOR 8' '#define GASNET_RELEASE_VERSION_PATCH 0'; do
        grep -q "^$line" "$incdir/gasnet_config.h" || fail "Caffeine: no line $line"
    done
    echo 'const char *id = PLATFORM_COMPILER_IDSTR;' | $(var CC) $(var CPPFLAGS) $(var CFLAGS) -include gasnet_portable_platform.h -E -x c - |
        grep -q 'COMPILER_FAMILY' || fail "Caffeine: no PLATFORM_COMPILER_IDSTR"
    $(var CC) $(var CPPFLAGS) $(var CFLAGS) -c "$scratch/client.c" -o "$scratch/caf.o" &&
        $(var LD) $(var LDFLAGS) "$scratch/caf.o" $(var LIBS) -o "$scratch/caf" && runs Caffeine "$scratch/caf"
}

# A package file that is read line by line: each variable is known before it is used, and flags are words.
chapel()
{
    awk -v "prefix=$prefix" '
    function replaced(text,    name) {
        while (match(text, /[$][{][^}]*[}]/)) {
            name = substr(text, RSTART + 2, RLENGTH - 3)
            if (!(name in value))
                exit bad = 1
            text = substr(text, 1, RSTART - 1) value[name] substr(text, RSTART + RLENGTH)
        }
        return text
    }
    /^[A-Za-z_0-9]+=/ {
        name = $0
        sub(/=.*/, "", name)
        value[name] = name == "prefix" ? prefix : replaced(substr($0, length(name) + 2))
    }
    /^(Cflags|Libs):/ { print $1, replaced(substr($0, index($0, ":") + 1)) }
    END { exit bad }' "$libdir/pkgconfig/gasnet-ibv-par.pc" >"$scratch/chapel" || fail "Chapel: gasnet-ibv-par.pc uses a variable above its definition"
    # shellcheck disable=SC2046 # lists of options
    gcc -O2 $(sed -n 's/^Cflags: //p' "$scratch/chapel") "$scratch/client.c" $(sed -n 's/^Libs: //p' "$scratch/chapel") -o "$scratch/chapel-client" &&
        runs Chapel "$scratch/chapel-client"
}

# A configure script that looks for the conduit's folder, then for its core header and the library in places made up from names
osss()
{
    [ -d "$incdir/ibv-conduit" ] || fail "OSSS: no folder ibv-conduit"
    [ -f "$incdir/ibv-conduit/gasnet_core.h" ] || fail "OSSS: no gasnet_core.h"
    printf '#include <gasnet_core.h>\n#include <gasnet.h>\nint ok = GASNET_VERSION;\n' >"$scratch/osss.c"
    gcc -DGASNET_PAR "-I$incdir" "-I$incdir/ibv-conduit" -c "$scratch/osss.c" -o "$scratch/osss.o" || fail "OSSS: gasnet_core.h"
    [ -e "$libdir/libgasnet-ibv-par.a" ] || [ -e "$libdir/libgasnet-ibv-par.so" ] || fail "OSSS: no libgasnet-ibv-par"
}

# A line written by hand, as in small codes: no fragment, no package
by_hand()
{
    [ "$shared" = yes ] || return
    gcc -D_GNU_SOURCE=1 -D_REENTRANT -DGASNET_PAR "-I$incdir" "-I$incdir/ibv-conduit" "$scratch/client.c" "-L$libdir" -lgasnet-ibv-par -libverbs \
        -lpthread -lm -o "$scratch/hand" && runs "by hand" "$scratch/hand" "LD_LIBRARY_PATH=$libdir"
}

# The last -O of the flags that the library was built with
opt="-O0 -g"
[ "$TRUNKLINE_TEST_DEBUG" = yes ] || opt=$(sed -n 's/^CFLAGS = //p' "$top_builddir/Makefile" | tr ' ' '\n' | sed -n '/^-O/h; ${g;p;}')
kinds=$modes
[ "$trace_twin" = no ] || kinds="$kinds seq-trace par-trace parsync-trace"
[ "$twin" = no ] || kinds="$kinds seq-debug par-debug parsync-debug"
for kind in $kinds; do
    case $kind in *-debug) opt="-O0 -g" ;; esac
    says_all "$incdir/ibv-conduit/ibv-$kind.mak" "gasnet-ibv-$kind" "$variables"
    only_if_true "$incdir/ibv-conduit/ibv-$kind.mak" "gasnet-ibv-$kind"
    spawners "$incdir/ibv-conduit/ibv-$kind.mak" "gasnet-ibv-$kind"
    optimised "$incdir/ibv-conduit/ibv-$kind.mak" "gasnet-ibv-$kind" "$opt"
done
for mode in seq par; do
    says_all "$incdir/gasnet_tools-$mode.mak" "gasnet_tools-$mode" "$tools_variables"
done
realm
upcxx
caffeine
chapel
osss
by_hand
finish
