#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The other processor of RDMA machines: every source of the library and the public headers compile for 64-bit ARM without a
# warning; the tools, which contain assembler, assemble to objects. If a complete cross toolchain
# and an emulator are installed, a client of the tools runs.
. "${top_srcdir:?run through make check}/tests/interface/common.sh"
libc=/usr/aarch64-linux-gnu/include
[ -d $libc ] || { echo "skipped: no $libc (Debian package libc6-dev-arm64-cross)"; exit 77; }
command -v clang >/dev/null || { echo "skipped: there is no clang"; exit 77; }
private="-I$top_builddir -I$top_srcdir -I$top_srcdir/conduit $include"
strict="-Wall -Wextra -Wno-unused-parameter -Werror -D_GNU_SOURCE"
arm="--target=aarch64-linux-gnu -isystem $libc"

# quiet LABEL command...
quiet()
{
    label=$1
    shift
    "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ] && return
    head -10 "$scratch/out"
    fail "$label"
}

# Headers of libraries that are the same for all processors come from the host's.
# shellcheck disable=SC2046,SC2086 # lists of options
library()
{
    # Debian installs this header per processor, although its content is the same for both.
    config=$(echo '#include <hwloc/autogen/config.h>' | ${TRUNKLINE_TEST_CC:-cc} $(pkg-config --cflags hwloc) -M -xc - | grep -o '/[^ ]*/autogen/config.h')
    mkdir -p "$scratch/host/hwloc/autogen"
    cp "$config" "$scratch/host/hwloc/autogen" || fail "hwloc/autogen/config.h of the host"
    sources="$(find "$top_srcdir/common" "$top_srcdir/conduit" -name '*.c' | sort)"
    quiet "the library" clang $arm -std=gnu11 -fsyntax-only $strict -DGASNET_PAR $private -isystem "$scratch/host" \
        $(pkg-config --cflags libibverbs librdmacm pmix hwloc) $sources
}

# shellcheck disable=SC2086
objects()
{
    cd "$scratch" || exit 1
    quiet "objects of the tools" clang $arm -std=gnu11 -O2 -c $strict -DGASNETT_THREAD_SAFE $private $alone
    cat >client.c <<'SOURCE'
#include <gasnet.h>
int main(void)
{
    gasnett_tick_t start = gasnett_ticks_now();
    gasnett_local_wmb();
    gasnett_local_rmb();
    gasnett_local_mb();
    gasnett_spinloop_hint();
    return gasnet_AMPoll() || gasnett_ticks_now() < start;
}
SOURCE
    quiet "a client" clang $arm -std=c99 -O2 -c $strict -pedantic -DGASNET_PAR $include client.c
    quiet "a client in C++" clang++ $arm -x c++ -std=c++11 -O2 -c $strict -pedantic -DGASNET_SEQ $include client.c
}

# shellcheck disable=SC2086
run()
{
    if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
        echo "compiled only: no aarch64-linux-gnu-gcc and qemu-aarch64-static (packages gcc-aarch64-linux-gnu, qemu-user-static)"
        return
    fi
    quiet "the tools by gcc" aarch64-linux-gnu-gcc -std=gnu11 -O2 -static $strict -DGASNETT_THREAD_SAFE $private $alone \
        "$top_srcdir/tests/install/tools.c" -lm -o "$scratch/tools"
    [ "$(timeout -k 5 60 qemu-aarch64-static "$scratch/tools" 2>&1)" = "tools: ok" ] || fail "a client of the tools does not run"
}

# The sources of libgasnet_tools
alone="$top_srcdir/conduit/base/report.c"
for file in "$top_srcdir"/conduit/tools/*.c; do
    case ${file##*/} in
    diagnostics.c | format.c | format_memory.c | env_backend_job.c | heap_checked.c | stats.c | trace_job.c) ;;
    *) alone="$alone $file" ;;
    esac
done

library
objects
run
finish
