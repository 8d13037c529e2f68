#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A CMake project finds the installed copy in its moved place, honours the requested components and
# versions, builds clients in C and C++ with the shared and with the static library, and they run.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
command -v cmake >/dev/null || { echo "skipped: there is no cmake (Debian package cmake)"; exit 77; }
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: clients of a library with sanitizers are built with the same ones"
    exit 77
fi
make_scratch
cp "$here/client.c" "$here/tools.c" "$here/forms.h" "$scratch/"
cp "$here/client.c" "$scratch/client.cc"
cp "$here/cmake.cmake" "$scratch/CMakeLists.txt"

# The moved copy: pkg-config learns the prefix by --define-variable, which CMake passes on as part of the command.
printf '#!/bin/sh\nexec pkg-config "--define-variable=prefix=%s" "$@"\n' "$prefix" >"$scratch/moved-pkg-config"
chmod +x "$scratch/moved-pkg-config"
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
if ! cmake -S "$scratch" -B "$scratch/build" "-DCMAKE_PREFIX_PATH=$prefix;$libdir/cmake" "-DPKG_CONFIG_EXECUTABLE=$scratch/moved-pkg-config" \
    -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ >"$scratch/log" 2>&1; then
    grep -A5 -i error "$scratch/log" | head -20
    fail "cmake does not configure"
    finish
fi
grep -q "launcher: $bindir/gasnetrun_ibv; interface: 2025.8.0" "$scratch/log" || fail "the launcher or the release are wrong"
if ! env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build "$scratch/build" >"$scratch/log" 2>&1; then
    grep -i -A3 'error\|undefined' "$scratch/log" | head -20
    fail "the clients do not build"
    finish
fi
grep -i warning "$scratch/log" && fail "the clients do not build in silence"

programs="c-seq c-par c-parsync cxx-par pc-par"
[ "$TRUNKLINE_TEST_STATIC" = no ] || programs="$programs c-static"
[ "$twin" = no ] || programs="$programs c-twin"
[ "$trace_twin" = no ] || programs="$programs c-trace"
for program in $programs; do
    timeout -k 5 60 env LD_LIBRARY_PATH= "$bindir/gasnetrun_ibv" -n 2 "$scratch/build/$program" >"$scratch/out" 2>"$scratch/err"
    if [ "$(sort "$scratch/out")" != "rank 0 of 2: ok
rank 1 of 2: ok" ]; then
        head -5 "$scratch/out" "$scratch/err"
        fail "$program"
    fi
done
[ "$(LD_LIBRARY_PATH='' "$scratch/build/c-tools")" = "tools: ok" ] || fail c-tools

linked()
{
    readelf -d "$scratch/build/$1" | grep -q "NEEDED.*libgasnet-ibv-$2"
}
[ "$TRUNKLINE_TEST_SHARED" = no ] || linked cxx-par par || fail "cxx-par is not linked with the shared library"
[ "$twin$TRUNKLINE_TEST_SHARED" != yesyes ] || linked c-twin par-debug || fail "c-twin is not linked with the debug twin"
[ "$trace_twin$TRUNKLINE_TEST_SHARED" != yesyes ] || linked c-trace par-trace || fail "c-trace is not linked with the trace twin"
[ "$TRUNKLINE_TEST_STATIC" = no ] || ! linked c-static seq || fail "c-static is linked with the shared library"
finish
