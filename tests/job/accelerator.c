/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "accelerator.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(truth) ((truth) ? (void)0 : fail(#truth, ""))
enum { devices_max = 16 };

static _Noreturn void fail(const char *what, const char *more)
{
    fprintf(stderr, "FAILED: the driver: %s %s\n", what, more);
    exit(1);
}

static void *open_any(const char *const *names)
{
    void *library = NULL;
    for (; !library && *names; names++)
        library = dlopen(*names, RTLD_NOW);
    if (!library)
        fail("dlopen", dlerror());
    return library;
}

static void *driver_function(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (!function)
        fail("there is no function", name);
    return function;
}

#define LOAD(table, name) *(void **)&table.name = driver_function(library, #name)

/* ---- CUDA ---- */

typedef unsigned long long CUdeviceptr;
static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int *);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuCtxSynchronize)(void);
    int (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
    int (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
    int (*cuMemcpyDtoD_v2)(CUdeviceptr, CUdeviceptr, size_t);
} cu;
static void *contexts[devices_max];

static int cuda_open(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    int devices;
    void *library = open_any(names);
    LOAD(cu, cuInit);
    LOAD(cu, cuDeviceGetCount);
    LOAD(cu, cuDevicePrimaryCtxRetain);
    LOAD(cu, cuCtxPushCurrent_v2);
    LOAD(cu, cuCtxPopCurrent_v2);
    LOAD(cu, cuCtxSynchronize);
    LOAD(cu, cuMemAlloc_v2);
    LOAD(cu, cuMemcpyHtoD_v2);
    LOAD(cu, cuMemcpyDtoH_v2);
    LOAD(cu, cuMemcpyDtoD_v2);
    CHECK(cu.cuInit(0) == 0);
    CHECK(cu.cuDeviceGetCount(&devices) == 0);
    for (int i = 0; i < devices && i < devices_max; i++)
        CHECK(cu.cuDevicePrimaryCtxRetain(&contexts[i], i) == 0);
    return devices;
}

static void cuda_enter(int device)
{
    CHECK(cu.cuCtxPushCurrent_v2(contexts[device]) == 0);
}

static void cuda_leave(void)
{
    void *old;
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuCtxPopCurrent_v2(&old) == 0);
}

static void *cuda_alloc(int device, size_t size)
{
    CUdeviceptr memory;
    cuda_enter(device);
    CHECK(cu.cuMemAlloc_v2(&memory, size) == 0);
    cuda_leave();
    return (void *)(uintptr_t)memory;
}

/* ---- HIP ---- */

enum hip_direction { HIP_IN = 1, HIP_OUT, HIP_INSIDE };
static struct {
    int (*hipInit)(unsigned);
    int (*hipGetDeviceCount)(int *);
    int (*hipGetDevice)(int *);
    int (*hipSetDevice)(int);
    int (*hipDeviceSynchronize)(void);
    int (*hipMalloc)(void **, size_t);
    int (*hipMemcpy)(void *, const void *, size_t, int);
} hip;
static bool is_hip;

static int hip_open(void)
{
    static const char *const names[] = {"libamdhip64.so.6", "libamdhip64.so.5", NULL};
    int devices;
    void *library = open_any(names);
    LOAD(hip, hipInit);
    LOAD(hip, hipGetDeviceCount);
    LOAD(hip, hipGetDevice);
    LOAD(hip, hipSetDevice);
    LOAD(hip, hipDeviceSynchronize);
    LOAD(hip, hipMalloc);
    LOAD(hip, hipMemcpy);
    CHECK(hip.hipInit(0) == 0);
    CHECK(hip.hipGetDeviceCount(&devices) == 0);
    return devices;
}

static int hip_enter(int device)
{
    int old;
    CHECK(hip.hipGetDevice(&old) == 0);
    CHECK(hip.hipSetDevice(device) == 0);
    return old;
}

static void hip_leave(int old)
{
    CHECK(hip.hipDeviceSynchronize() == 0);
    CHECK(hip.hipSetDevice(old) == 0);
}

static void *hip_alloc(int device, size_t size)
{
    void *memory;
    int old = hip_enter(device);
    CHECK(hip.hipMalloc(&memory, size) == 0);
    hip_leave(old);
    return memory;
}

static void hip_copy(int device, void *to, const void *from, size_t size, enum hip_direction which)
{
    int old = hip_enter(device);
    CHECK(hip.hipMemcpy(to, from, size, (int)which) == 0);
    hip_leave(old);
}

/* ---- either ---- */

int acc_open(void)
{
    const char *class = getenv("KINDS_CLASS");
    is_hip = class && !strcmp(class, "hip");
    int devices = is_hip ? hip_open() : cuda_open();
    CHECK(devices > 0);
    return devices < devices_max ? devices : devices_max;
}

gex_MK_Create_args_t acc_args(int device)
{
    gex_MK_Create_args_t args = {.gex_class = is_hip ? GEX_MK_CLASS_HIP : GEX_MK_CLASS_CUDA_UVA};
    if (is_hip)
        args.gex_args.gex_class_hip.gex_hipDevice = device;
    else
        args.gex_args.gex_class_cuda_uva.gex_CUdevice = device;
    return args;
}

char *acc_alloc(int device, size_t size)
{
    return is_hip ? hip_alloc(device, size) : cuda_alloc(device, size);
}

void acc_write(int device, char *at, const void *from, size_t size)
{
    if (is_hip) {
        hip_copy(device, at, from, size, HIP_IN);
        return;
    }
    cuda_enter(device);
    CHECK(cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)at, from, size) == 0);
    cuda_leave();
}

void acc_read(int device, void *to, const char *at, size_t size)
{
    if (is_hip) {
        hip_copy(device, to, at, size, HIP_OUT);
        return;
    }
    cuda_enter(device);
    CHECK(cu.cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)at, size) == 0);
    cuda_leave();
}

void acc_copy(int device, char *to, const char *from, size_t size)
{
    if (is_hip) {
        hip_copy(device, to, from, size, HIP_INSIDE);
        return;
    }
    cuda_enter(device);
    CHECK(cu.cuMemcpyDtoD_v2((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size) == 0);
    cuda_leave();
}
