/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How cases of the driver API begin. */
#ifndef SGPU_TEST_CUDA_START_H
#define SGPU_TEST_CUDA_START_H

#include <cuda.h>

#include "cases.h"

static inline CUcontext cuda_start(int device)
{
    CUcontext context;

    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, device));
    GOOD(cuCtxPushCurrent(context));
    return context;
}

static inline CUdeviceptr cuda_alloc(size_t size)
{
    CUdeviceptr p;

    GOOD(cuMemAlloc(&p, size));
    return p;
}

static inline void *host_pointer(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

#endif
