/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of neighbours' devices, mapped by the vendor's IPC at its first use. Owns a list of
 * endpoints and a list of what is mapped: endpoints that are bound to one allocation share its
 * mapping, as a process may open a handle only once. Guarded by the lock of the room. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "settings/settings.h"

/* An allocation. The handle of a freed allocation may be used again, with another serial number. */
struct opened {
    struct opened *next;
    struct tk_kind_ipc ipc;
    uint32_t serial;
    struct tk_kind_device *device; /* held; NULL: it is not opened */
    uintptr_t base;
    uint32_t rank;
    unsigned users;
    bool is_refused;
};

/* An endpoint's segment, as its record was when it was mapped. */
struct seat {
    struct seat *next;
    struct tk_kind_mapping mapping;
    struct opened *opened;
    uintptr_t base;
    uint64_t inode;
    uint32_t rank, endpoint;
};

static struct opened *opened;
static struct seat *seats;

static bool is_same_handle(const struct opened *o, uint32_t rank, const struct tk_bound_kind *kind)
{
    return o->rank == rank && memcmp(o->ipc.handle, kind->ipc, sizeof(kind->ipc)) == 0;
}

static bool is_same(const struct opened *o, uint32_t rank, const struct tk_bound_kind *kind)
{
    return o->serial == kind->serial && is_same_handle(o, rank, kind);
}

static void *ipc_alloc(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        tk_panic("out of memory for the mapping of a neighbour's device memory");
    return memory;
}

static void say_refused(uint32_t rank, uint32_t endpoint, const char *why)
{
    const struct tk_peer *peer = tk_peer(rank);
    if (tk_settings.verboseenv)
        tk_log_info("device memory of endpoint %u of rank %u (%s, pid %d) can't be mapped: %s; it "
                    "is reached through staging buffers",
                    endpoint, rank, peer->host, peer->pid, why);
}

/* Without an open device of that class, try again later: one may be opened meanwhile. */
static void open_handle(struct opened *o, const struct tk_bound *bound)
{
    struct tk_kind_why why = {"the class lacks it"};
    struct tk_kind_device *device = tk_kind_device_like(bound->kind->gex_class, bound->kind->uuid);
    if (!device)
        return;
    if (device->class->ipc_open &&
        device->class->ipc_open(device, &o->ipc, &o->base, &why) == TK_OK) {
        tk_kind_device_hold(device);
        o->device = device;
        return;
    }
    o->is_refused = true;
    say_refused(o->rank, bound->endpoint, why.text);
}

static struct opened *opened_get(uint32_t rank, const struct tk_bound *bound)
{
    struct opened *o = opened;
    while (o && !is_same(o, rank, bound->kind))
        o = o->next;
    if (!o) {
        o = ipc_alloc(sizeof(*o));
        o->rank = rank;
        o->serial = bound->kind->serial;
        memcpy(o->ipc.handle, bound->kind->ipc, sizeof(o->ipc.handle));
        o->ipc.offset = bound->kind->offset;
        o->next = opened;
        opened = o;
    }
    o->users++;
    return o;
}

static void opened_put(struct opened *o)
{
    if (--o->users > 0)
        return;
    struct opened **at = &opened;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    if (o->device) {
        o->device->class->ipc_close(o->device, o->base);
        tk_kind_device_put(o->device);
    }
    free(o);
}

static struct seat *seat_of(uint32_t rank, uint32_t endpoint)
{
    for (struct seat *s = seats; s; s = s->next)
        if (s->rank == rank && s->endpoint == endpoint)
            return s;
    struct seat *s = ipc_alloc(sizeof(*s));
    s->rank = rank;
    s->endpoint = endpoint;
    s->next = seats;
    seats = s;
    return s;
}

static bool is_current(const struct seat *s, const struct tk_bound *bound)
{
    return s->opened && s->base == bound->base && s->inode == bound->inode &&
           is_same(s->opened, s->rank, bound->kind);
}

static void seat_clear(struct seat *s)
{
    if (s->opened)
        opened_put(s->opened);
    s->opened = NULL;
    s->mapping.device = NULL;
}

/* A mapping with this record's handle but another serial number was freed by its owner. Close it
 * before the handle is opened again: otherwise opening would map the freed memory, or fail. */
static void close_freed(uint32_t rank, const struct tk_bound_kind *kind)
{
    for (struct seat *s = seats; s; s = s->next)
        if (s->opened && is_same_handle(s->opened, rank, kind) && !is_same(s->opened, rank, kind))
            seat_clear(s);
}

const struct tk_kind_mapping *tk_kind_ipc_find(uint32_t rank, const struct tk_bound *bound)
{
    struct seat *s = seat_of(rank, bound->endpoint);
    if (!is_current(s, bound)) {
        seat_clear(s);
        close_freed(rank, bound->kind);
        s->opened = opened_get(rank, bound);
        s->base = bound->base;
        s->inode = bound->inode;
    }
    if (!s->mapping.device && !s->opened->device && !s->opened->is_refused)
        open_handle(s->opened, bound);
    if (!s->mapping.device && s->opened->device) {
        s->mapping.device = s->opened->device;
        s->mapping.offset = s->opened->base + bound->kind->offset - bound->base;
    }
    return s->mapping.device ? &s->mapping : NULL;
}

unsigned tk_kind_ipc_holds(const struct tk_kind_device *device)
{
    unsigned holds = 0;
    for (const struct opened *o = opened; o; o = o->next)
        holds += o->device == device;
    return holds;
}

void tk_kind_ipc_release(struct tk_kind_device *device)
{
    for (struct seat **at = &seats, *s; (s = *at);) {
        if (s->mapping.device != device) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        opened_put(s->opened);
        free(s);
    }
}
