/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIP's copies and fills. Owns nothing. */
#include "config.h"

#include "contrib/softgpu/hip/hip_entry.h"

static uint64_t number(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static hipError_t copy_now(void *to, const void *from, size_t n, enum sgpu_direction direction)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(sgpu_copy(c, NULL, number(to), number(from), n, direction));
}

static hipError_t copy_async(void *to, const void *from, size_t n, enum sgpu_direction direction,
                             hipStream_t handle)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(handle, &c, &s);

    if (result != hipSuccess)
        return result;
    return hip_leave(sgpu_copy(c, s, number(to), number(from), n, direction));
}

static hipError_t set_now(void *to, uint32_t value, unsigned width, size_t n)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(sgpu_set(c, NULL, number(to), value, width, n));
}

static hipError_t set_async(void *to, uint32_t value, unsigned width, size_t n, hipStream_t handle)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(handle, &c, &s);

    if (result != hipSuccess)
        return result;
    return hip_leave(sgpu_set(c, s, number(to), value, width, n));
}

static bool direction_of(hipMemcpyKind kind, enum sgpu_direction *out)
{
    static const enum sgpu_direction directions[] = {
        [hipMemcpyHostToHost] = SGPU_HTOH,   [hipMemcpyHostToDevice] = SGPU_HTOD,
        [hipMemcpyDeviceToHost] = SGPU_DTOH, [hipMemcpyDeviceToDevice] = SGPU_DTOD,
        [hipMemcpyDefault] = SGPU_ANY,
    };

    if ((unsigned)kind > hipMemcpyDefault)
        return false;
    *out = directions[kind];
    return true;
}

/* ---- copies ---- */

hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind)
{
    enum sgpu_direction direction;

    return direction_of(kind, &direction) ? copy_now(dst, src, sizeBytes, direction)
                                          : hip_result(SGPU_INVALID_VALUE);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                          hipStream_t stream)
{
    enum sgpu_direction direction;

    return direction_of(kind, &direction) ? copy_async(dst, src, sizeBytes, direction, stream)
                                          : hip_result(SGPU_INVALID_VALUE);
}

hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                               hipStream_t stream)
{
    hipError_t result = hipMemcpyAsync(dst, src, sizeBytes, kind, stream);

    return result != hipSuccess ? result : hipStreamSynchronize(stream);
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t sizeBytes)
{
    return copy_now(dst, src, sizeBytes, SGPU_HTOD);
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t sizeBytes)
{
    return copy_now(dst, src, sizeBytes, SGPU_DTOH);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes)
{
    return copy_now(dst, src, sizeBytes, SGPU_DTOD);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t sizeBytes, hipStream_t stream)
{
    return copy_async(dst, src, sizeBytes, SGPU_HTOD, stream);
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
{
    return copy_async(dst, src, sizeBytes, SGPU_DTOH, stream);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes,
                              hipStream_t stream)
{
    return copy_async(dst, src, sizeBytes, SGPU_DTOD, stream);
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream)
{
    const struct sgpu_rows rows = {width, height, dpitch, spitch};
    enum sgpu_direction direction;
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result;

    if (!direction_of(kind, &direction))
        return hip_result(SGPU_INVALID_VALUE);
    result = hip_enter_stream(stream, &c, &s);
    if (result != hipSuccess)
        return result;
    return hip_leave(sgpu_copy_rows(c, s, number(dst), number(src), &rows, direction));
}

/* ---- between devices ---- */

static bool device_holds(int device, const void *address)
{
    struct sgpu_memory *m = sgpu_memory_find(number(address));

    return m && sgpu_memory_on_device(m) && m->device == device;
}

static int copy_peer(struct sgpu_context *c, struct sgpu_stream *s, void *to, int to_device,
                     const void *from, int from_device, size_t n)
{
    if (!sgpu_device_exists(to_device) || !sgpu_device_exists(from_device))
        return SGPU_INVALID_DEVICE;
    if (!device_holds(to_device, to) || !device_holds(from_device, from))
        return SGPU_INVALID_VALUE;
    return sgpu_copy(c, s, number(to), number(from), n, SGPU_DTOD);
}

hipError_t hipMemcpyPeer(void *dst, int dstDeviceId, const void *src, int srcDeviceId,
                         size_t sizeBytes)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(copy_peer(c, NULL, dst, dstDeviceId, src, srcDeviceId, sizeBytes));
}

hipError_t hipMemcpyPeerAsync(void *dst, int dstDeviceId, const void *src, int srcDevice,
                              size_t sizeBytes, hipStream_t stream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    if (result != hipSuccess)
        return result;
    return hip_leave(copy_peer(c, s, dst, dstDeviceId, src, srcDevice, sizeBytes));
}

/* ---- fills ---- */

hipError_t hipMemset(void *dst, int value, size_t sizeBytes)
{
    return set_now(dst, (unsigned char)value, 1, sizeBytes);
}

hipError_t hipMemsetD8(hipDeviceptr_t dest, unsigned char value, size_t count)
{
    return set_now(dest, value, 1, count);
}

hipError_t hipMemsetD32(hipDeviceptr_t dest, int value, size_t count)
{
    return set_now(dest, (uint32_t)value, 4, count);
}

hipError_t hipMemsetAsync(void *dst, int value, size_t sizeBytes, hipStream_t stream)
{
    return set_async(dst, (unsigned char)value, 1, sizeBytes, stream);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dest, unsigned char value, size_t count,
                            hipStream_t stream)
{
    return set_async(dest, value, 1, count, stream);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
{
    return set_async(dst, (uint32_t)value, 4, count, stream);
}
