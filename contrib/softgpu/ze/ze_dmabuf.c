/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Level Zero's dma-bufs. Owns their descriptors: the driver keeps the one that it gives as long as
 * the memory. The lock of ze_enter() protects them. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "contrib/softgpu/ze/ze_entry.h"

struct dmabuf {
    struct dmabuf *next;
    ze_context_handle_t context;
    uint64_t address;
    int fd;
};
static struct dmabuf *dmabufs;

void ze_dmabuf_forget(ze_context_handle_t context, uint64_t address)
{
    for (struct dmabuf **at = &dmabufs; *at;) {
        struct dmabuf *d = *at;

        if (d->context != context || (address != 0 && d->address != address)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        close(d->fd);
        free(d);
    }
}

int ze_dmabuf_export(ze_context_handle_t context, const struct sgpu_memory *m, int *fd)
{
    struct dmabuf *d;
    int status;

    for (d = dmabufs; d; d = d->next)
        if (d->context == context && d->address == m->address) {
            *fd = d->fd;
            return SGPU_OK;
        }
    if (!(m->flags & ZE_MEMORY_FOR_EXPORT))
        return SGPU_NOT_SUPPORTED;
    d = malloc(sizeof *d);
    if (!d)
        return SGPU_OUT_OF_MEMORY;
    *d = (struct dmabuf){dmabufs, context, m->address, -1};
    status = sgpu_export(m->address, m->length, true, &d->fd);
    if (status != SGPU_OK) {
        free(d);
        return status;
    }
    dmabufs = d;
    *fd = d->fd;
    return SGPU_OK;
}
