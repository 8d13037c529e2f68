/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdint.h>

#include "job.h"

typedef unsigned long long CUdeviceptr;
static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int *);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
    int (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
} cu;

enum { devices_max = 16 };
static void *contexts[devices_max];

static void *driver_function(void *library, const char *name)
{
    void *function = dlsym(library, name);
    CHECK(function, "%s", name);
    return function;
}

int cuda_open(void)
{
    int devices;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library, "%s", dlerror());
#define LOAD(name) *(void **)&cu.name = driver_function(library, #name)
    LOAD(cuInit);
    LOAD(cuDeviceGetCount);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxPushCurrent_v2);
    LOAD(cuCtxPopCurrent_v2);
    LOAD(cuMemAlloc_v2);
    LOAD(cuMemcpyHtoD_v2);
    LOAD(cuMemcpyDtoH_v2);
    CHECK(cu.cuInit(0) == 0);
    CHECK(cu.cuDeviceGetCount(&devices) == 0 && devices > 0);
    if (devices > devices_max)
        devices = devices_max;
    for (int i = 0; i < devices; i++)
        CHECK(cu.cuDevicePrimaryCtxRetain(&contexts[i], i) == 0);
    return devices;
}

static void enter(int device)
{
    CHECK(cu.cuCtxPushCurrent_v2(contexts[device]) == 0);
}

static void leave(void)
{
    void *old;
    CHECK(cu.cuCtxPopCurrent_v2(&old) == 0);
}

char *cuda_alloc(int device, size_t size)
{
    CUdeviceptr memory;
    enter(device);
    CHECK(cu.cuMemAlloc_v2(&memory, size) == 0);
    leave();
    return (char *)(uintptr_t)memory;
}

void cuda_write(int device, char *at, const void *from, size_t size)
{
    enter(device);
    CHECK(cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)at, from, size) == 0);
    leave();
}

void cuda_read(int device, void *to, const char *at, size_t size)
{
    enter(device);
    CHECK(cu.cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)at, size) == 0);
    leave();
}
