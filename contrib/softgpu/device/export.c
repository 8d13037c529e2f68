/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for HCAs: stand-ins for dma-bufs (common/dmabuf_standin.h), and peer memory, which is the
 * same without pages. Owns nothing. */
#include "config.h"

#include <errno.h>

#include "contrib/softgpu/device/device.h"

static bool exportable(const struct sgpu_memory *m, uint64_t address, uint64_t length, bool dmabuf)
{
    uint64_t offset = address - m->address;

    if (!sgpu_memory_on_device(m) || m->storage->foreign || !m->accessible || !m->rdma ||
        length == 0)
        return false;
    if (!dmabuf)
        return sgpu_memory_holds(m, address, length);
    /* Whole pages; the last page of an allocation belongs to it although its size ends before. */
    return address == sgpu_round(address) && length == sgpu_round(length) && offset < m->length &&
           length <= m->length - offset;
}

int sgpu_export(uint64_t address, uint64_t length, bool dmabuf, int *fd)
{
    struct sgpu_memory *m = sgpu_memory_find(address);
    struct sgpu_storage *s;
    int status, file;

    if (dmabuf ? sgpu_config.no_dmabuf : sgpu_config.no_peermem)
        return SGPU_NOT_SUPPORTED;
    if (!m || !exportable(m, address, length, dmabuf))
        return SGPU_INVALID_VALUE;
    status = sgpu_fault_call(SGPU_FAULT_EXPORT, m->device);
    if (status != SGPU_OK)
        return status;
    /* A fault's delay lets other threads in. */
    m = sgpu_memory_find(address);
    if (!m || !exportable(m, address, length, dmabuf))
        return SGPU_INVALID_VALUE;
    s = m->storage;
    if (sgpu_config.weak_order && !sgpu_weak_export(s))
        return SGPU_OUT_OF_MEMORY;
    file = sgpu_bar_export(s, sgpu_config.weak_order ? s->shadow_fd : s->fd,
                           m->offset + (address - m->address), length);
    if (file < 0)
        return SGPU_OUT_OF_MEMORY;
    *fd = file;
    return SGPU_OK;
}
