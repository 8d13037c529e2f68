#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library has its own declarations of the calls of CUDA's driver, HIP and Level Zero. This test
# compares them with the vendors' headers if those are installed (Debian: libamdhip64-dev,
# libze-dev).
top=${top_srcdir:?run through make check}
here=$top/tests/unit/kind
compared=
for vendor in cuda:cuda.h hip:hip/hip_runtime_api.h ze:level_zero/ze_api.h; do
    name=${vendor%%:*} header=${vendor#*:}
    if ! echo "#include <$header>" | ${CXX:-c++} -D__HIP_PLATFORM_AMD__ -D__HIP_PLATFORM_HCC__ -x c++ -fsyntax-only - 2>/dev/null; then
        echo "$header is not installed"
        continue
    fi
    # Not -Werror: the headers are the vendor's.
    ${CXX:-c++} -std=c++11 -I"$top/conduit" -I"$here" -fsyntax-only "$here/${name}_headers.cc" ||
        { echo "conduit/kind/${name}_api.h is not what $header says"; exit 1; }
    compared="$compared $header"
done
[ -n "$compared" ] || exit 77
echo "compared:$compared"
