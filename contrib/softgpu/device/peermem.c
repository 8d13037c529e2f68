/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a software HCA asks the library: memory behind a device address, as the peer-memory module
 * of the kernel would answer (common/dmabuf_standin.h). Owns nothing. */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "common/dmabuf_standin.h"
#include "contrib/softgpu/device/device.h"
#include "contrib/softgpu/device/peermem.h"

static int export_error(int status)
{
    return status == SGPU_OK              ? 0
           : status == SGPU_NOT_SUPPORTED ? ENOTSUP
           : status == SGPU_OUT_OF_MEMORY ? ENOMEM
                                          : EINVAL;
}

int softgpu_export(const void *address, size_t length, int *fd, off_t *offset)
{
    int status = sgpu_started();

    if (status != SGPU_OK)
        return EINVAL;
    sgpu_enter();
    status = sgpu_leave(sgpu_export((uint64_t)(uintptr_t)address, length, false, fd));
    if (status == SGPU_OK)
        *offset = lseek(*fd, 0, SEEK_CUR);
    return export_error(status);
}

/* As with AMD's library, the dma-buf covers the whole allocation. */
static int export_whole(uint64_t address, size_t length, int *fd, off_t *offset)
{
    struct sgpu_memory *m = sgpu_memory_find(address);
    uint64_t base = m ? m->address : 0;
    int status;

    if (!m || !sgpu_memory_holds(m, address, length))
        return SGPU_INVALID_VALUE;
    status = sgpu_export(base, m->length, true, fd);
    *offset = (off_t)(address - base);
    return status;
}

int softgpu_export_dmabuf(const void *address, size_t length, int *fd, off_t *offset)
{
    int status = sgpu_started();

    if (status != SGPU_OK)
        return EINVAL;
    sgpu_enter();
    return export_error(sgpu_leave(export_whole((uint64_t)(uintptr_t)address, length, fd, offset)));
}
