#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The stand-ins for HIP and Level Zero have the functions, types and numbers that the vendors' headers declare: hip_declarations.c and
# ze_declarations.c compile with softgpu's headers and with those (Debian's libamdhip64-dev and libze-dev; HIP_INCLUDE and ZE_INCLUDE name
# other places). CUDA's header is not in Debian: only softgpu's own is checked.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
include=${top_srcdir:?}/contrib/softgpu/include
amd=${HIP_INCLUDE:-/usr/include}
intel=${ZE_INCLUDE:-/usr/include}

# compiles FLAGS...
compiles()
{
    # shellcheck disable=SC2086 # a command with arguments
    ${TRUNKLINE_TEST_CC:-cc} -std=gnu11 "$@" -c -o "$work/out.o" || exit 1
}

compiles -Wall -Wextra -Werror -I"$include" "$top_srcdir/tests/softgpu/hip_declarations.c"
compiles -Wall -Wextra -Werror -I"$include" "$top_srcdir/tests/softgpu/ze_declarations.c"
# Programs in C++ include it too, and in C99.
for header in cuda.h hip/hip_runtime_api.h hsa/hsa_ext_amd.h level_zero/ze_api.h; do
    echo "#include <$header>" >"$work/use.c"
    compiles -std=c99 -Wall -Werror -I"$include" "$work/use.c"
    command -v c++ >/dev/null && {
        c++ -x c++ -Wall -Werror -I"$include" -c -o "$work/out.o" "$work/use.c" || exit 1
    }
done
# Each library exports exactly the functions that its header declares, and the functions for softhca.
for pair in cuda.h:libcuda.so.1 hip/hip_runtime_api.h:libamdhip64.so.5 hsa/hsa_ext_amd.h:libhsa-runtime64.so.1 \
    level_zero/ze_api.h:libze_loader.so.1; do
    echo "#include <${pair%:*}>" >"$work/use.c"
    ${TRUNKLINE_TEST_CC:-cc} -E -P -I"$include" "$work/use.c" | tr '\n' ' ' |
        grep -oE '\b(cu[A-Z]|hip[A-Z]|hsa_|ze[A-Z])[A-Za-z0-9_]* ?\([^()]*\) ?;' | sed 's/ *(.*//' | sort -u >"$work/declared"
    readelf -W --dyn-syms "${top_builddir:?}/contrib/softgpu/lib/${pair#*:}" | awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }' |
        grep -vxE 'softgpu_export|softgpu_export_dmabuf|cuGetProcAddress|cuDeviceGetUuid|_init|_fini' | sort -u >"$work/exported"
    [ "$(wc -l <"$work/declared")" -ge 4 ] || { echo "cannot read ${pair%:*}"; exit 1; }
    diff "$work/declared" "$work/exported" || { echo "${pair%:*} (<) and ${pair#*:} (>) differ"; exit 1; }
done
missing=
if [ -e "$amd/hip/hip_runtime_api.h" ]; then
    compiles -D__HIP_PLATFORM_AMD__ -w -I"$amd" -Werror=incompatible-pointer-types "$top_srcdir/tests/softgpu/hip_declarations.c"
else
    missing="$amd/hip (Debian package libamdhip64-dev)"
fi
if [ -e "$intel/level_zero/ze_api.h" ]; then
    compiles -w -I"$intel" -Werror=incompatible-pointer-types "$top_srcdir/tests/softgpu/ze_declarations.c"
else
    missing="$missing $intel/level_zero (Debian package libze-dev)"
fi
[ -z "$missing" ] || {
    echo "not compared with the vendors' declarations: there is no $missing"
    exit 77
}
