/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's copies and fills. Owns nothing. */
#include "config.h"

#include "contrib/softgpu/cuda/cuda_entry.h"

enum { MAX_PITCH = 0x7fffffff };

static uint64_t host(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static CUresult copy_now(uint64_t to, uint64_t from, size_t n, enum sgpu_direction direction)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_copy(c, NULL, to, from, n, direction));
}

static CUresult copy_async(uint64_t to, uint64_t from, size_t n, enum sgpu_direction direction,
                           CUstream handle)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(handle, &c, &s);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_copy(c, s, to, from, n, direction));
}

static CUresult set_now(uint64_t to, uint32_t value, unsigned width, size_t n)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_set(c, NULL, to, value, width, n));
}

static CUresult set_async(uint64_t to, uint32_t value, unsigned width, size_t n, CUstream handle)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(handle, &c, &s);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_set(c, s, to, value, width, n));
}

/* ---- copies ---- */

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_now(dst, src, ByteCount, SGPU_ANY);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_now(dstDevice, host(srcHost), ByteCount, SGPU_HTOD);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_now(host(dstHost), srcDevice, ByteCount, SGPU_DTOH);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_now(dstDevice, srcDevice, ByteCount, SGPU_DTOD);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_async(dst, src, ByteCount, SGPU_ANY, hStream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                              CUstream hStream)
{
    return copy_async(dstDevice, host(srcHost), ByteCount, SGPU_HTOD, hStream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    return copy_async(host(dstHost), srcDevice, ByteCount, SGPU_DTOH, hStream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    return copy_async(dstDevice, srcDevice, ByteCount, SGPU_DTOD, hStream);
}

/* ---- two dimensions ---- */

/* 0: an array, or no address. The host side may lie in any memory that is mapped. */
static uint64_t side_2d(CUmemorytype type, const void *at_host, CUdeviceptr on_device, size_t x,
                        size_t y, size_t pitch)
{
    uint64_t base = type == CU_MEMORYTYPE_HOST     ? host(at_host)
                    : type == CU_MEMORYTYPE_DEVICE ? on_device
                                                   : 0;

    return base == 0 ? 0 : base + y * pitch + x;
}

static enum sgpu_direction direction_2d(const CUDA_MEMCPY2D *copy)
{
    if (copy->srcMemoryType == CU_MEMORYTYPE_HOST)
        return copy->dstMemoryType == CU_MEMORYTYPE_HOST ? SGPU_HTOH : SGPU_HTOD;
    return copy->dstMemoryType == CU_MEMORYTYPE_HOST ? SGPU_DTOH : SGPU_DTOD;
}

/* Without arrays and unified addresses */
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct sgpu_rows rows;
    uint64_t to, from;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    if (!pCopy || pCopy->srcPitch > MAX_PITCH || pCopy->dstPitch > MAX_PITCH)
        return cuda_leave(SGPU_INVALID_VALUE);
    rows = (struct sgpu_rows){pCopy->WidthInBytes, pCopy->Height, pCopy->dstPitch, pCopy->srcPitch};
    to = side_2d(pCopy->dstMemoryType, pCopy->dstHost, pCopy->dstDevice, pCopy->dstXInBytes,
                 pCopy->dstY, pCopy->dstPitch);
    from = side_2d(pCopy->srcMemoryType, pCopy->srcHost, pCopy->srcDevice, pCopy->srcXInBytes,
                   pCopy->srcY, pCopy->srcPitch);
    if (to == 0 || from == 0)
        return cuda_leave(SGPU_INVALID_VALUE);
    return cuda_leave(sgpu_copy_rows(c, s, to, from, &rows, direction_2d(pCopy)));
}

/* ---- between contexts ---- */

static bool context_holds(CUcontext context, CUdeviceptr address)
{
    struct sgpu_context *c = (struct sgpu_context *)(void *)context;
    struct sgpu_memory *m = sgpu_memory_find(address);

    return c && sgpu_context_known(c) && m && m->device == c->device;
}

static int copy_peer(struct sgpu_context *c, struct sgpu_stream *s, CUdeviceptr to,
                     CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n)
{
    if (!context_holds(to_context, to) || !context_holds(from_context, from))
        return SGPU_INVALID_VALUE;
    return sgpu_copy(c, s, to, from, n, SGPU_DTOD);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(copy_peer(c, NULL, dstDevice, dstContext, srcDevice, srcContext, ByteCount));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(copy_peer(c, s, dstDevice, dstContext, srcDevice, srcContext, ByteCount));
}

/* ---- fills ---- */

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return set_now(dstDevice, uc, 1, N);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return set_now(dstDevice, us, 2, N);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return set_now(dstDevice, ui, 4, N);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return set_async(dstDevice, uc, 1, N, hStream);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return set_async(dstDevice, us, 2, N, hStream);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return set_async(dstDevice, ui, 4, N, hStream);
}
