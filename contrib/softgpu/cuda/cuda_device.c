/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's start, errors and devices. Owns nothing. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "contrib/softgpu/cuda/cuda_entry.h"
#include "contrib/softgpu/device/place.h"

/* ---- start and errors ---- */

CUresult cuInit(unsigned int Flags)
{
    return Flags != 0 ? CUDA_ERROR_INVALID_VALUE : (CUresult)sgpu_start();
}

CUresult cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    const struct sgpu_status_text *t = sgpu_status_text((int)error);

    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = t ? t->text : NULL;
    return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    const struct sgpu_status_text *t = sgpu_status_text((int)error);

    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = t ? t->cuda : NULL;
    return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- functions by name ---- */

static void *function_named(const char *name)
{
    char newer[128];
    Dl_info self;
    void *library, *function;

    if (!dladdr((void *)cuInit, &self))
        return NULL;
    library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return NULL;
    snprintf(newer, sizeof newer, "%s_v2", name);
    function = dlsym(library, newer);
    if (!function)
        function = dlsym(library, name);
    dlclose(library);
    return function;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    (void)cudaVersion;
    (void)flags;
    if (!symbol || !pfn)
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = function_named(symbol);
    if (symbolStatus)
        *symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
__attribute__((visibility("default"))) CUresult cuGetProcAddress(const char *symbol, void **pfn,
                                                                 int cudaVersion, cuuint64_t flags);
/* That of CUDA 11 */
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

/* ---- devices ---- */

/* Device queries need no context and no lock: the properties of a device never change. */
static CUresult check(CUdevice dev, const void *out)
{
    int status = sgpu_started();

    if (status != SGPU_OK)
        return (CUresult)status;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    return sgpu_device_exists(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = check(ordinal, device);

    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = check(0, count);

    if (result == CUDA_SUCCESS)
        *count = (int)sgpu_config.devices;
    return result;
}

static CUresult fill(char *out, int len, const char *text)
{
    if (len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)len, "%s", text);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    CUresult result = check(dev, name);
    char text[32];

    if (result != CUDA_SUCCESS)
        return result;
    sgpu_device_name(text, sizeof text, dev);
    return fill(name, len, text);
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    CUresult result = check(dev, pciBusId);
    char text[32];

    if (result != CUDA_SUCCESS)
        return result;
    sgpu_device_pci(text, sizeof text, dev);
    return fill(pciBusId, len, text);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    CUresult result = check(0, dev);
    char text[32];

    if (result != CUDA_SUCCESS || !pciBusId)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; sgpu_device_exists(i); i++) {
        sgpu_device_pci(text, sizeof text, i);
        if (strcasecmp(text, pciBusId) == 0) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    CUresult result = check(dev, uuid);

    if (result == CUDA_SUCCESS)
        sgpu_device_uuid(uuid->bytes, dev);
    return result;
}

#undef cuDeviceGetUuid
__attribute__((visibility("default"))) CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult result = check(dev, bytes);

    if (result == CUDA_SUCCESS)
        *bytes = sgpu_config.memory;
    return result;
}

static int attribute(CUdevice_attribute attrib, CUdevice dev)
{
    switch (attrib) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return SGPU_PCI_BUS + dev;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        return SGPU_PCI_SLOT;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        return SGPU_PCI_DOMAIN;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        return !sgpu_config.no_uva;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return 8;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        return !sgpu_config.no_dmabuf || !sgpu_config.no_peermem;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
        return CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        return sgpu_config.weak_order ? CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE
                                      : CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        return !sgpu_config.no_dmabuf;
    default:
        return 0;
    }
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult result = check(dev, pi);

    if (result != CUDA_SUCCESS)
        return result;
    if ((int)attrib <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pi = attribute(attrib, dev);
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    CUresult result = check(dev, canAccessPeer);

    if (result != CUDA_SUCCESS || !sgpu_device_exists(peerDev))
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);
    bool all = scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES;

    if (result != CUDA_SUCCESS)
        return result;
    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
        (!all && scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER))
        return cuda_leave(SGPU_INVALID_VALUE);
    sgpu_weak_flush(all ? -1 : c->device);
    return cuda_leave(SGPU_OK);
}
