#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The softgpu command: programs that it runs find its libraries, also below and above softhca run; mistakes are one line and
# status 2, before the program runs and in the library; nothing is left behind.
set -u
softgpu=${top_builddir:?}/contrib/softgpu/softgpu
softhca=$top_builddir/contrib/softhca/softhca
lib=$(cd "$top_builddir/contrib/softgpu/lib" && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset SOFTGPU SOFTGPU_FAULT
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

# says STATUS TEXT COMMAND...: the command ends with STATUS and prints TEXT (a regular expression), on one line if STATUS is not 0
says()
{
    local status=$1 text=$2
    shift 2
    timeout 60 "$@" >"$work/out" 2>&1
    [ $? = "$status" ] || fail "$* did not end with $status: $(cat "$work/out")"
    grep -Eq -- "$text" "$work/out" || fail "$*: no line like '$text' but: $(cat "$work/out")"
    [ "$status" = 0 ] || [ "$(wc -l <"$work/out")" = 1 ] || fail "$*: not one line: $(cat "$work/out")"
}

# Which libraries the loader picks for a program that was built without softgpu
cat >"$work/client.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    int (*init)(unsigned) = NULL, (*count)(int *) = NULL, n = -1;
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *f;
    (void)argv;
    if (!cuda || !dlopen("libamdhip64.so.5", RTLD_NOW) || !dlopen("libhsa-runtime64.so.1", RTLD_NOW))
        return 1;
    f = dlsym(cuda, "cuInit");
    memcpy(&init, &f, sizeof f);
    f = dlsym(cuda, "cuDeviceGetCount");
    memcpy(&count, &f, sizeof f);
    if (init(0) != 0 || count(&n) != 0)
        return 1;
    printf("%d devices, %d arguments\n", n, argc - 1);
    return 0;
}
END
${TRUNKLINE_TEST_CC:-cc} -o "$work/client" "$work/client.c" -ldl || exit 1
client=$work/client
case ${TRUNKLINE_TEST_SANITIZER:-no} in
    no) ;;
    *) client= ;; # A sanitized library cannot be loaded into it.
esac

says 0 '^usage: softgpu run' "$softgpu" --help
says 0 '^usage: softgpu run' "$softgpu" run --help
says 0 '^softgpu \(trunkline\)' "$softgpu" --version
says 2 'subcommand is missing' "$softgpu"
says 2 "'fly' is neither run nor list" "$softgpu" fly
says 2 'a program is missing' "$softgpu" run
says 2 "no option '--wings'" "$softgpu" run --wings x
says 2 'needs a value' "$softgpu" run --options
says 127 'cannot run /no/such' "$softgpu" run /no/such
says 126 'cannot run /etc' "$softgpu" run /etc
for wrong in devices=17 devices devices=-1 bar=1x memory=100 delay=1.5 no-ipc=1 nonsense; do
    says 2 "SOFTGPU: .*$wrong.*legal are devices=0..16, memory=SIZE" "$softgpu" run --options "$wrong" true
    [ -z "$client" ] || SOFTGPU=$wrong LD_LIBRARY_PATH=$lib says 2 "SOFTGPU: .*$wrong.*legal are" "$client"
done
for wrong in 'fly:nth=1|known are copy, alloc' 'copy:speed=1|it takes dev, nth' 'copy:nth=0|from 1 to' 'copy:p=2|probability' \
    'copy:error=NONE|CUDA_ERROR_UNKNOWN' 'copy:nth=1,count=2|nth names one' 'alloc:when=run|copy only' 'copy:us=9-3|from 9 to'; do
    says 2 "SOFTGPU_FAULT: .*${wrong#*|}" "$softgpu" run --fault "${wrong%|*}" true
    [ -z "$client" ] || SOFTGPU_FAULT=${wrong%|*} LD_LIBRARY_PATH=$lib says 2 "SOFTGPU_FAULT: .*${wrong#*|}" "$client"
done
says 0 '^softgpu1 +0000:42:00.0 +2048 +64 +no +yes +yes +weak' "$softgpu" list --options devices=2,memory=2G,bar=64M,no-dmabuf,weak-order
if [ -n "$client" ]; then
    says 0 '^3 devices, 2 arguments' "$softgpu" run --options=devices=3 "$client" a b
    says 0 '^1 devices, 1 arguments' "$softgpu" run -- "$client" --help
    SOFTGPU=devices=4 says 0 '^4 devices' "$softgpu" run "$softhca" run --hcas 2 "$client"
    SOFTGPU=devices=4 says 0 '^4 devices' "$softhca" run --hcas 2 "$softgpu" run "$client"
    # The earlier path is kept after it.
    # shellcheck disable=SC2016 # the program's shell expands it
    says 0 "^$lib:/somewhere\$" env LD_LIBRARY_PATH=/somewhere "$softgpu" run sh -c 'echo "$LD_LIBRARY_PATH"'
    # An installation that was moved as a whole
    mkdir -p "$work/moved/bin" "$work/moved/lib/trunkline/softgpu"
    cp "$softgpu" "$work/moved/bin" && cp "$lib"/*.so.* "$work/moved/lib/trunkline/softgpu"
    says 0 '^1 devices' "$work/moved/bin/softgpu" run "$client"
fi

# A killed program leaves no process, and no file in /dev/shm.
"$top_builddir/tests/softgpu/cuda_ipc" >"$work/out" 2>&1 || fail "cuda_ipc: $(cat "$work/out")"
compgen -G '/dev/shm/*softgpu*' && fail "files in /dev/shm"
exit $failed
