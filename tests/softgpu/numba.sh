#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that uses only CUDA's driver API runs unchanged: numba (Debian: python3-numba) allocates, pins, copies in streams, records
# events, makes IPC handles and opens them in another process, with one device and with two.
set -u
softgpu=${top_builddir:?run through make check}/contrib/softgpu/softgpu
[ -e "$top_builddir/contrib/softgpu/lib/libcuda.so.1" ] || exit 1
case ${TRUNKLINE_TEST_SANITIZER:-no} in
    no) ;;
    *) echo "a sanitized library cannot be loaded into python3" && exit 77 ;;
esac
python3 -c 'import numba.cuda' 2>/dev/null || {
    echo "python3-numba is not installed"
    exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export NUMBA_CACHE_DIR=$work
unset SOFTGPU SOFTGPU_FAULT

cat >"$work/client.py" <<'END'
import multiprocessing, sys
import numpy as np
from numba import cuda

def opened(handle, wanted, answer):
    with handle as array:
        answer.put(bool((array.copy_to_host() == wanted).all()))

def device(number, a):
    cuda.select_device(number)
    d = cuda.to_device(a)
    assert (d.copy_to_host() == a).all()
    stream = cuda.stream()
    pinned = cuda.pinned_array(a.size, dtype=a.dtype)
    pinned[:] = 7
    e = cuda.to_device(pinned, stream=stream)
    back = e.copy_to_host(stream=stream)
    event = cuda.event()
    event.record(stream)
    event.synchronize()
    assert event.query() and (back == 7).all()
    e.copy_to_device(d)
    assert (e.copy_to_host() == a).all()
    assert (d[10:20].copy_to_host() == a[10:20]).all()
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free < total
    answer = multiprocessing.get_context("spawn").Queue()
    other = multiprocessing.get_context("spawn").Process(target=opened, args=(d.get_ipc_handle(), a, answer))
    other.start()
    assert answer.get(timeout=60)
    other.join()

if __name__ == "__main__":
    count = len(cuda.gpus)
    for number in range(count):
        device(number, np.arange(100000, dtype=np.float64) + number)
    print("numba: ok,", count, "devices")
END

failed=0
for devices in 1 2; do
    timeout 120 "$softgpu" run --options "devices=$devices,delay=50" -- python3 "$work/client.py" >"$work/out" 2>&1
    status=$?
    [ "$status" = 0 ] && grep -q "^numba: ok, $devices devices\$" "$work/out" || {
        echo "FAIL: $devices devices: status $status: $(tail -5 "$work/out")"
        failed=1
    }
done
exit $failed
