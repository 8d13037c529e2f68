/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See kinds_devices.h. */
#include "config.h"

#include "kinds_devices.h"

#include <dlfcn.h>
#include <string.h>

#include "job.h"

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);
    CHECK(library, "%s", dlerror());
    return library;
}

/* As the library does: a machine may have HIP of ROCm 5 or 6. */
static void *open_hip(void)
{
    void *library = dlopen("libamdhip64.so.6", RTLD_NOW);
    return library ? library : open_library("libamdhip64.so.5");
}

static void *function_of(void *library, const char *name)
{
    void *function = dlsym(library, name);
    CHECK(function, "%s", name);
    return function;
}
#define LOAD(of, library, name) *(void **)&of.name = function_of(library, #name)

/* ---- CUDA ---- */

typedef unsigned long long CUdeviceptr;
static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int *);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuDevicePrimaryCtxRelease_v2)(int);
    int (*cuDevicePrimaryCtxGetState)(int, unsigned *, int *);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuCtxGetCurrent)(void **);
    int (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
    int (*cuMemFree_v2)(CUdeviceptr);
    int (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
} cu;

static void cuda_load(void)
{
    void *library = open_library("libcuda.so.1");
    LOAD(cu, library, cuInit);
    LOAD(cu, library, cuDeviceGetCount);
    LOAD(cu, library, cuDevicePrimaryCtxRetain);
    LOAD(cu, library, cuDevicePrimaryCtxRelease_v2);
    LOAD(cu, library, cuDevicePrimaryCtxGetState);
    LOAD(cu, library, cuCtxPushCurrent_v2);
    LOAD(cu, library, cuCtxPopCurrent_v2);
    LOAD(cu, library, cuCtxGetCurrent);
    LOAD(cu, library, cuMemAlloc_v2);
    LOAD(cu, library, cuMemFree_v2);
    LOAD(cu, library, cuMemcpyHtoD_v2);
    LOAD(cu, library, cuMemcpyDtoH_v2);
}

static int cuda_count(void)
{
    int count;
    CHECK(cu.cuDeviceGetCount(&count) == 0 && count > 0);
    return count;
}

static void cuda_open(struct kinds_device *d, bool is_last)
{
    cuda_load();
    CHECK(cu.cuInit(0) == 0);
    d->number = is_last ? cuda_count() - 1 : 0;
    CHECK(cu.cuDevicePrimaryCtxRetain(&d->context, d->number) == 0);
}

static void cuda_describe(const struct kinds_device *d, gex_MK_Create_args_t *args)
{
    args->gex_class = GEX_MK_CLASS_CUDA_UVA;
    args->gex_args.gex_class_cuda_uva.gex_CUdevice = d->number;
}

static void cuda_enter(const struct kinds_device *d)
{
    CHECK(cu.cuCtxPushCurrent_v2(d->context) == 0);
}

static void cuda_leave(void)
{
    void *old;
    CHECK(cu.cuCtxPopCurrent_v2(&old) == 0);
}

static char *cuda_alloc(const struct kinds_device *d, size_t size)
{
    CUdeviceptr memory;
    cuda_enter(d);
    CHECK(cu.cuMemAlloc_v2(&memory, size) == 0);
    cuda_leave();
    return (char *)(uintptr_t)memory;
}

static void cuda_free(const struct kinds_device *d, char *memory)
{
    cuda_enter(d);
    CHECK(cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)memory) == 0);
    cuda_leave();
}

static void cuda_write(const struct kinds_device *d, char *to, const void *from, size_t size)
{
    cuda_enter(d);
    CHECK(cu.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)to, from, size) == 0);
    cuda_leave();
}

static void cuda_read(const struct kinds_device *d, void *to, const char *from, size_t size)
{
    cuda_enter(d);
    CHECK(cu.cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)from, size) == 0);
    cuda_leave();
}

static uintptr_t cuda_current(void)
{
    void *context;
    CHECK(cu.cuCtxGetCurrent(&context) == 0);
    return (uintptr_t)context;
}

static void cuda_close(const struct kinds_device *d)
{
    CHECK(cu.cuDevicePrimaryCtxRelease_v2(d->number) == 0);
}

static void cuda_check_idle(void)
{
    for (int i = 0; i < cuda_count(); i++) {
        unsigned flags;
        int is_active;
        CHECK(cu.cuDevicePrimaryCtxGetState(i, &flags, &is_active) == 0);
        CHECK(!is_active, "the context of device %d is still held", i);
    }
}

/* ---- HIP: each thread has its own current device ---- */

static struct {
    int (*hipInit)(unsigned);
    int (*hipGetDeviceCount)(int *);
    int (*hipGetDevice)(int *);
    int (*hipSetDevice)(int);
    int (*hipMalloc)(void **, size_t);
    int (*hipFree)(void *);
    int (*hipMemcpy)(void *, const void *, size_t, int);
} hip;

static void hip_open(struct kinds_device *d, bool is_last)
{
    void *library = open_hip();
    int count;
    LOAD(hip, library, hipInit);
    LOAD(hip, library, hipGetDeviceCount);
    LOAD(hip, library, hipGetDevice);
    LOAD(hip, library, hipSetDevice);
    LOAD(hip, library, hipMalloc);
    LOAD(hip, library, hipFree);
    LOAD(hip, library, hipMemcpy);
    CHECK(hip.hipInit(0) == 0);
    CHECK(hip.hipGetDeviceCount(&count) == 0 && count > 0);
    d->number = is_last ? count - 1 : 0;
}

static void hip_describe(const struct kinds_device *d, gex_MK_Create_args_t *args)
{
    args->gex_class = GEX_MK_CLASS_HIP;
    args->gex_args.gex_class_hip.gex_hipDevice = d->number;
}

static uintptr_t hip_current(void)
{
    int device;
    CHECK(hip.hipGetDevice(&device) == 0);
    return (uintptr_t)device;
}

static char *hip_alloc(const struct kinds_device *d, size_t size)
{
    int old = (int)hip_current();
    void *memory;
    CHECK(hip.hipSetDevice(d->number) == 0);
    CHECK(hip.hipMalloc(&memory, size) == 0);
    CHECK(hip.hipSetDevice(old) == 0);
    return memory;
}

static void hip_free(const struct kinds_device *d, char *memory)
{
    (void)d;
    CHECK(hip.hipFree(memory) == 0);
}

static void hip_write(const struct kinds_device *d, char *to, const void *from, size_t size)
{
    enum { to_device = 1 };
    (void)d;
    CHECK(hip.hipMemcpy(to, from, size, to_device) == 0);
}

static void hip_read(const struct kinds_device *d, void *to, const char *from, size_t size)
{
    enum { to_host = 2 };
    (void)d;
    CHECK(hip.hipMemcpy(to, from, size, to_host) == 0);
}

static void hip_close(const struct kinds_device *d)
{
    (void)d;
}

static void hip_check_idle(void)
{
}

/* ---- Level Zero: no current device; a list of commands is used by one thread ---- */

struct ze_desc { /* ze_context_desc_t, ze_device_mem_alloc_desc_t, ze_command_queue_desc_t */
    uint32_t stype;
    const void *next;
    uint32_t words[8];
};
enum { ZE_CONTEXT = 0xd, ZE_QUEUE = 0xe, ZE_DEVICE_MEMORY = 0x15, ZE_SYNCHRONOUS = 1 };

static struct {
    int (*zeInit)(uint32_t);
    int (*zeDriverGet)(uint32_t *, void **);
    int (*zeDeviceGet)(void *, uint32_t *, void **);
    int (*zeContextCreate)(void *, const struct ze_desc *, void **);
    int (*zeContextDestroy)(void *);
    int (*zeMemAllocDevice)(void *, const struct ze_desc *, size_t, size_t, void *, void **);
    int (*zeMemFree)(void *, void *);
    int (*zeCommandListCreateImmediate)(void *, void *, const struct ze_desc *, void **);
    int (*zeCommandListDestroy)(void *);
    int (*zeCommandListAppendMemoryCopy)(void *, void *, const void *, size_t, void *, uint32_t,
                                         void **);
} ze;

static void ze_load(void)
{
    void *library = open_library("libze_loader.so.1");
    LOAD(ze, library, zeInit);
    LOAD(ze, library, zeDriverGet);
    LOAD(ze, library, zeDeviceGet);
    LOAD(ze, library, zeContextCreate);
    LOAD(ze, library, zeContextDestroy);
    LOAD(ze, library, zeMemAllocDevice);
    LOAD(ze, library, zeMemFree);
    LOAD(ze, library, zeCommandListCreateImmediate);
    LOAD(ze, library, zeCommandListDestroy);
    LOAD(ze, library, zeCommandListAppendMemoryCopy);
}

static void ze_open(struct kinds_device *d, bool is_last)
{
    const struct ze_desc desc = {.stype = ZE_CONTEXT};
    void *driver, *devices[16];
    uint32_t drivers = 1, count = 16;
    ze_load();
    CHECK(ze.zeInit(0) == 0);
    CHECK(ze.zeDriverGet(&drivers, &driver) == 0 && drivers > 0);
    CHECK(ze.zeDeviceGet(driver, &count, devices) == 0 && count > 0);
    d->device = devices[is_last ? count - 1 : 0];
    CHECK(ze.zeContextCreate(driver, &desc, &d->context) == 0);
}

static void ze_describe(const struct kinds_device *d, gex_MK_Create_args_t *args)
{
    args->gex_class = GEX_MK_CLASS_ZE;
    args->gex_args.gex_class_ze.gex_zeDevice = d->device;
    args->gex_args.gex_class_ze.gex_zeContext = d->context;
    args->gex_args.gex_class_ze.gex_zeMemoryOrdinal = 0;
}

static char *ze_alloc(const struct kinds_device *d, size_t size)
{
    const struct ze_desc desc = {.stype = ZE_DEVICE_MEMORY};
    void *memory;
    CHECK(ze.zeMemAllocDevice(d->context, &desc, size, 64, d->device, &memory) == 0);
    return memory;
}

static void ze_free(const struct kinds_device *d, char *memory)
{
    CHECK(ze.zeMemFree(d->context, memory) == 0);
}

static void ze_copy(const struct kinds_device *d, void *to, const void *from, size_t size)
{
    const struct ze_desc desc = {.stype = ZE_QUEUE, .words[3] = ZE_SYNCHRONOUS};
    void *list;
    CHECK(ze.zeCommandListCreateImmediate(d->context, d->device, &desc, &list) == 0);
    CHECK(ze.zeCommandListAppendMemoryCopy(list, to, from, size, NULL, 0, NULL) == 0);
    CHECK(ze.zeCommandListDestroy(list) == 0);
}

static void ze_write(const struct kinds_device *d, char *to, const void *from, size_t size)
{
    ze_copy(d, to, from, size);
}

static void ze_read(const struct kinds_device *d, void *to, const char *from, size_t size)
{
    ze_copy(d, to, from, size);
}

static uintptr_t ze_current(void)
{
    return 0;
}

static void ze_close(const struct kinds_device *d)
{
    CHECK(ze.zeContextDestroy(d->context) == 0);
}

static void ze_check_idle(void)
{
}

/* ---- */

#define VENDOR(v)                                                                                  \
    {                                                                                              \
#        v, v##_open, v##_describe, v##_alloc, v##_free, v##_write, v##_read, v##_current,         \
            v##_close, v##_check_idle                                                              \
    }

const struct kinds_vendor *kinds_vendor(const char *name, size_t length)
{
    static const struct kinds_vendor vendors[] = {VENDOR(cuda), VENDOR(hip), VENDOR(ze)};
    for (size_t i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
        if (strlen(vendors[i].name) == length && !memcmp(vendors[i].name, name, length))
            return &vendors[i];
    CHECK(0, "no vendor '%.*s'", (int)length, name);
    return NULL;
}
