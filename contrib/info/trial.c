/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether RDMA devices reach the memory of an accelerator, by the calls that a job makes: a small
 * piece is allocated, exported and registered, and released. No state. */
#include "config.h"

#include "contrib/info/accelerators.h"
#include "kind/kind.h"
#include "transport/verbs/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The page of a GPU that its drivers map for other devices */
enum { trial_size = 65536 };

static const int trial_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

static void trial_over(struct info_trial *trial, const char *call, struct ibv_mr *mr)
{
    trial->error = mr ? 0 : errno;
    trial->works = mr != NULL;
    if (mr)
        ibv_dereg_mr(mr);
    else
        snprintf(trial->why, sizeof(trial->why), "%s: %s", call, strerror(trial->error));
}

static void try_dmabuf(struct info_trial *trial, struct ibv_pd *pd,
                       const struct tk_kind_memory *memory)
{
    struct tk_kind_why why;
    uint64_t offset;
    int fd;
    if (memory->device->class->export_dmabuf(memory->device, memory->base, memory->size, &fd,
                                             &offset, &why) != TK_OK) {
        snprintf(trial->why, sizeof(trial->why), "%s", why.text);
        return;
    }
    trial_over(trial, "ibv_reg_dmabuf_mr",
               tk_reg_dmabuf_mr(pd, offset, memory->size, memory->base, fd, trial_access));
    close(fd);
}

static void try_peer_memory(struct info_trial *trial, struct ibv_pd *pd,
                            const struct tk_kind_memory *memory)
{
    trial_over(trial, "ibv_reg_mr",
               ibv_reg_mr(pd, (void *)memory->base, memory->size, trial_access));
}

static void try_open(struct info_hca *hca, struct ibv_context *context,
                     const struct tk_kind_memory *memory)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    if (!pd) {
        snprintf(hca->dmabuf.why, sizeof(hca->dmabuf.why), "ibv_alloc_pd: %s", strerror(errno));
        hca->peermem = hca->dmabuf;
        return;
    }
    try_dmabuf(&hca->dmabuf, pd, memory);
    try_peer_memory(&hca->peermem, pd, memory);
    ibv_dealloc_pd(pd);
}

static struct ibv_context *open_named(const char *name)
{
    struct ibv_context *context = NULL;
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name))
            context = ibv_open_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return context;
}

static void try_hca(struct info_hca *hca, const struct tk_kind_memory *memory)
{
    struct ibv_context *context = open_named(hca->name);
    if (!context) {
        snprintf(hca->dmabuf.why, sizeof(hca->dmabuf.why), "it can't be opened");
        hca->peermem = hca->dmabuf;
        return;
    }
    try_open(hca, context, memory);
    ibv_close_device(context);
}

static void try_ipc(struct info_trial *trial, const struct tk_kind_memory *memory)
{
    struct tk_kind_ipc ipc;
    struct tk_kind_why why = {"the driver has no IPC"};
    trial->works = memory->device->facts.has_ipc &&
                   memory->device->class->ipc_get(memory->device, memory->allocation.base, &ipc,
                                                  &why) == TK_OK;
    if (!trial->works)
        snprintf(trial->why, sizeof(trial->why), "%s", why.text);
}

void info_try_accelerator(struct info_accelerator *a, struct tk_kind_device *device)
{
    struct tk_kind_memory memory;
    struct tk_kind_why why;
    bool is_argument;
    a->has_memory =
        tk_kind_memory_open(&memory, device, 0, trial_size, &is_argument, &why) == TK_OK;
    if (!a->has_memory) {
        snprintf(a->why_not, sizeof(a->why_not), "%s", why.text);
        return;
    }
    try_ipc(&a->ipc, &memory);
    for (unsigned i = 0; i < a->hca_count; i++)
        try_hca(&a->hcas[i], &memory);
    tk_kind_memory_close(&memory);
}
