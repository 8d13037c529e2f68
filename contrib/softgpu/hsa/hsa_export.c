/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stand-in for libhsa-runtime64.so.1: dma-bufs of the memory of the HIP stand-in that this
 * process has loaded. Owns nothing. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "contrib/softgpu/include/hsa/hsa_ext_amd.h"

typedef int (*export_function)(const void *address, size_t length, int *fd, off_t *offset);

hsa_status_t hsa_init(void)
{
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_shut_down(void)
{
    return HSA_STATUS_SUCCESS;
}

static export_function hip_function(void)
{
    static const char *const names[] = {"libamdhip64.so.5", "libamdhip64.so.6"};
    export_function f = NULL;

    for (unsigned i = 0; i < sizeof names / sizeof names[0] && !f; i++) {
        void *hip = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);

        if (hip) {
            f = (export_function)dlsym(hip, "softgpu_export_dmabuf");
            dlclose(hip); /* of this reference: the library stays */
        }
    }
    return f;
}

hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf,
                                            uint64_t *offset)
{
    export_function f = hip_function();
    int error, fd;
    off_t at;

    if (!ptr || !dmabuf || !offset || size == 0)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (!f)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    error = f(ptr, size, &fd, &at);
    if (error == ENOMEM)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    if (error == ENOTSUP)
        return HSA_STATUS_ERROR;
    if (error != 0)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    *dmabuf = fd;
    *offset = (uint64_t)at;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf)
{
    return close(dmabuf) == 0 ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
