/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts and devices: what a call needs, and what it says without it. */
#include <pthread.h>

#include "cuda_start.h"

static void uninitialized(void)
{
    CUcontext c;
    int n, version;
    const char *name;

    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&c));
    GOOD(cuDriverGetVersion(&version));
    GOOD(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
    CHECK(strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    GIVES(1, cuGetErrorName((CUresult)12345, &name));
    GIVES(1, cuInit(1));
    GOOD(cuInit(0));
    GOOD(cuDeviceGetCount(&n));
    CHECK(n == 3);
}

static void no_devices(void)
{
    GIVES(CUDA_ERROR_NO_DEVICE, cuInit(0));
}

static void places(void)
{
    char name[32], pci[32];
    int value;
    CUuuid a, b;
    CUdevice d;

    GOOD(cuInit(0));
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, 2));
    GOOD(cuDeviceGet(&d, 1));
    GOOD(cuDeviceGetName(name, sizeof name, d));
    CHECK(strcmp(name, "softgpu1") == 0);
    GOOD(cuDeviceGetPCIBusId(pci, sizeof pci, d));
    GOOD(cuDeviceGetByPCIBusId(&d, pci));
    CHECK(d == 1);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1));
    CHECK(value == (int)strtol(pci + 5, NULL, 16));
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1));
    CHECK(value == 0);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1));
    CHECK(value == 1);
    GOOD(cuDeviceGetUuid(&a, 0));
    GOOD(cuDeviceGetUuid(&b, 1));
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    GOOD(cuDeviceCanAccessPeer(&value, 0, 1));
    CHECK(value == 1);
}

static void stack(void)
{
    CUcontext a, b, c;
    CUdevice d;
    CUdeviceptr p;

    GOOD(cuInit(0));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 1));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&c));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent((CUcontext)&p));
    GOOD(cuCtxGetCurrent(&c));
    CHECK(c == NULL);
    GOOD(cuCtxCreate(&a, 0, 0));
    GOOD(cuDevicePrimaryCtxRetain(&b, 1));
    GOOD(cuCtxPushCurrent(b));
    GOOD(cuCtxGetDevice(&d));
    CHECK(d == 1);
    GOOD(cuCtxPopCurrent(&c));
    CHECK(c == b);
    GOOD(cuCtxGetDevice(&d));
    CHECK(d == 0);
    GOOD(cuCtxSetCurrent(b));
    GOOD(cuCtxGetCurrent(&c));
    CHECK(c == b);
    GOOD(cuCtxSetCurrent(NULL));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
}

static void *without_context(void *result)
{
    CUdeviceptr p;

    *(CUresult *)result = cuMemAlloc(&p, 1);
    return NULL;
}

static void threads(void)
{
    CUresult result;
    pthread_t t;

    cuda_start(0);
    CHECK(pthread_create(&t, NULL, without_context, &result) == 0);
    pthread_join(t, NULL);
    CHECK(result == CUDA_ERROR_INVALID_CONTEXT);
}

static void destroyed(void)
{
    CUcontext c, primary, again;
    CUdeviceptr p;
    CUstream s;
    unsigned flags;
    int active;

    GOOD(cuInit(0));
    GOOD(cuCtxCreate(&c, 0, 0));
    GOOD(cuCtxPushCurrent(c));
    p = cuda_alloc(10);
    GOOD(cuStreamCreate(&s, 0));
    GOOD(cuCtxDestroy(c));
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemFree(p)); /* still current below */
    GOOD(cuCtxPopCurrent(NULL));
    GOOD(cuDevicePrimaryCtxRetain(&primary, 0));
    GOOD(cuCtxPushCurrent(primary));
    GIVES(1, cuMemFree(p)); /* gone with its context */
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
    p = cuda_alloc(10);
    GOOD(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 1);
    GOOD(cuDevicePrimaryCtxRelease(0));
    GOOD(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 0);
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemFree(p));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    GOOD(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == primary);
    GIVES(1, cuMemFree(p));
    p = cuda_alloc(10);
    GOOD(cuDevicePrimaryCtxReset(0));
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemFree(p));
}

static void call_in_child(void *unused)
{
    CUdeviceptr p;
    int n;

    (void)unused;
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, 1));
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
}

static void forked(void)
{
    CUdeviceptr p;
    CUstream s;

    cuda_start(0);
    p = cuda_alloc(100);
    GOOD(cuStreamCreate(&s, 0));
    GOOD(cuMemsetD8Async(p, 1, 100, s));
    CHECK(in_child(call_in_child, NULL) == 0);
    GOOD(cuStreamSynchronize(s));
}

static void by_name(void)
{
    CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
    void *function = NULL;
    CUdriverProcAddressQueryResult found;
    CUdeviceptr p;

    cuda_start(0);
    GOOD(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &found));
    memcpy(&alloc, &function, sizeof alloc);
    CHECK(alloc == cuMemAlloc && found == CU_GET_PROC_ADDRESS_SUCCESS);
    GOOD(alloc(&p, 10));
    GIVES(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothing", &function, 12000, 0, &found));
}

static const struct gpu_case cases[] = {
    {"uninitialized", uninitialized, "devices=3", NULL, 0},
    {"no devices", no_devices, "devices=0", NULL, 0},
    {"places", places, "devices=2,no-uva", NULL, 0},
    {"stack", stack, "devices=2", NULL, 0},
    {"threads", threads, NULL, NULL, 0},
    {"destroyed", destroyed, NULL, NULL, 0},
    {"forked", forked, NULL, NULL, 0},
    {"by name", by_name, NULL, NULL, 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
