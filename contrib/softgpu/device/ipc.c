/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of other processes. A handle names the process, the descriptor of its memfd and the nonce
 * behind the bytes, so that a handle of freed memory or of a dead process is not taken for newer
 * memory. Owns nothing. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "contrib/softgpu/device/device.h"

struct handle {
    char magic[8];
    int32_t pid, fd;
    uint64_t nonce, length, size;
};
_Static_assert(sizeof(struct handle) <= SGPU_IPC_SIZE, "a handle has 64 bytes");
static const char magic[8] = "softgpu1";

int sgpu_ipc_make(uint64_t address, void *out)
{
    struct sgpu_memory *m = sgpu_memory_find(address);
    struct handle h;
    int status;

    if (sgpu_config.no_ipc)
        return SGPU_NOT_SUPPORTED;
    if (!m || m->kind != SGPU_DEVICE)
        return SGPU_INVALID_VALUE;
    h = (struct handle){.pid = getpid(),
                        .fd = m->storage->fd,
                        .nonce = m->storage->nonce,
                        .length = m->storage->length,
                        .size = m->size};
    status = sgpu_fault_call(SGPU_FAULT_IPC, m->device);
    if (status != SGPU_OK)
        return status;
    memcpy(h.magic, magic, sizeof magic);
    memset(out, 0, SGPU_IPC_SIZE);
    memcpy(out, &h, sizeof h);
    return SGPU_OK;
}

/* A handle that this context has open */
static struct sgpu_memory *opened(const struct sgpu_context *c, uint64_t nonce)
{
    struct sgpu_memory *m = NULL;

    while ((m = sgpu_memory_next(m)))
        if (m->kind == SGPU_IPC && m->context == c && m->storage->nonce == nonce)
            return m;
    return NULL;
}

static int ipc_map(struct sgpu_context *c, const struct handle *h, uint64_t *address)
{
    struct sgpu_memory range = {.size = h->size,
                                .length = h->length,
                                .kind = SGPU_IPC,
                                .context = c,
                                .opened = 1,
                                .accessible = true};

    range.storage = sgpu_storage_open(h->pid, h->fd, h->nonce, h->length);
    if (!range.storage)
        return SGPU_MAP_FAILED;
    range.device = range.storage->device;
    range.address =
        sgpu_device_exists(range.device) ? sgpu_reserve(range.length, SGPU_ALIGNMENT) : 0;
    if (range.address && sgpu_memory_add(&range)) {
        *address = range.address;
        return SGPU_OK;
    }
    if (range.address)
        sgpu_unreserve(range.address, range.length);
    sgpu_storage_put(range.storage);
    return SGPU_MAP_FAILED;
}

int sgpu_ipc_open(struct sgpu_context *c, const void *handle, uint64_t *address)
{
    struct sgpu_memory *m;
    struct handle h;
    int status;

    if (sgpu_config.no_ipc)
        return SGPU_NOT_SUPPORTED;
    memcpy(&h, handle, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return SGPU_INVALID_HANDLE;
    if (h.pid == getpid())
        return SGPU_INVALID_CONTEXT;
    status = sgpu_fault_call(SGPU_FAULT_IPC, c->device);
    if (status != SGPU_OK)
        return status;
    m = opened(c, h.nonce);
    if (!m)
        return ipc_map(c, &h, address);
    m->opened++;
    *address = m->address;
    return SGPU_OK;
}

int sgpu_ipc_close(uint64_t address)
{
    struct sgpu_memory *m = sgpu_memory_find(address);

    if (!m || m->kind != SGPU_IPC || m->address != address)
        return SGPU_INVALID_VALUE;
    if (m->opened > 1) {
        m->opened--;
        return SGPU_OK;
    }
    sgpu_device_wait(m->device);
    m = sgpu_memory_find(address);
    if (!m || m->kind != SGPU_IPC || m->address != address)
        return SGPU_INVALID_VALUE;
    sgpu_unreserve(m->address, m->length);
    sgpu_memory_remove(m);
    return SGPU_OK;
}
