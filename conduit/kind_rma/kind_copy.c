/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies by devices. The staging memory is pinned for a device at its first copy. Owns the list of
 * devices for which it is; guarded by the lock of the room. */
#include "config.h"

#include <stdlib.h>

#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "transport/transport.h"

struct pinned {
    struct pinned *next;
    struct tk_kind_device *device; /* held */
    bool is_pinned;
};

unsigned tk_kind_copies;
static struct pinned *pinned;

/* Copies from and to pageable memory are slower, and block the caller in some drivers. */
static void pin_staging(struct tk_kind_device *device)
{
    const struct tk_area *area = &tk_kind_staging.area;
    for (const struct pinned *p = pinned; p; p = p->next)
        if (p->device == device)
            return;
    struct pinned *p = tk_kind_staging.is_open ? malloc(sizeof(*p)) : NULL;
    if (!p)
        return;
    *p = (struct pinned){.next = pinned, .device = device};
    if (device->class->pin_host)
        p->is_pinned = device->class->pin_host(device, area->base, area->size);
    tk_kind_device_hold(device);
    pinned = p;
}

unsigned tk_kind_copy_holds(const struct tk_kind_device *device)
{
    unsigned holds = 0;
    for (const struct pinned *p = pinned; p; p = p->next)
        holds += p->device == device;
    return holds;
}

void tk_kind_copy_release(struct tk_kind_device *device)
{
    struct pinned **at = &pinned, *p;
    while ((p = *at) && p->device != device)
        at = &p->next;
    if (!p)
        return;
    *at = p->next;
    if (p->is_pinned)
        device->class->unpin_host(device, tk_kind_staging.area.base);
    tk_kind_device_put(device);
    free(p);
}

static struct tk_kind_device *device_of(const struct tk_kind_copy *copy)
{
    return copy->to_device ? copy->to_device : copy->from_device;
}

static bool has_failed;

/* Ends the job as a lost peer does: without a core dump, because the machine failed and not the
 * program. A job that is already exiting continues to do so, and no copy completes any more. */
static void fail(const struct tk_kind_copy *copy, const struct tk_kind_why *why)
{
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    char device[200];
    has_failed = true;
    if (!lost_peer)
        return;
    tk_log_error("a copy of %zu bytes from %s %p to %s %p by %s failed: %s", copy->nbytes,
                 copy->from_device ? "device address" : "host address", (void *)copy->from,
                 copy->to_device ? "device address" : "host address", (void *)copy->to,
                 tk_kind_device_text(device_of(copy), device, sizeof(device)), why->text);
    lost_peer(tk_no_peer);
}

bool tk_kind_copy_flush(struct tk_kind_device *device)
{
    struct tk_kind_why why = {""};
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    char text[200];
    if (!has_failed && device->class->flush(device, &why) == TK_OK)
        return true;
    if (!has_failed && lost_peer) {
        tk_log_error("flushing what an HCA wrote to %s failed: %s",
                     tk_kind_device_text(device, text, sizeof(text)), why.text);
        lost_peer(tk_no_peer);
    }
    has_failed = true;
    return false;
}

bool tk_kind_copy_has_failed(void)
{
    return has_failed;
}

bool tk_kind_copy_start(struct tk_kind_copy *copy)
{
    struct tk_kind_why why = {""};
    struct tk_kind_device *device = device_of(copy);
    if (has_failed)
        return false;
    pin_staging(device);
    enum tk_status status = device->class->copy(copy, &why);
    if (status == TK_FAIL)
        fail(copy, &why);
    if (status != TK_OK)
        return false;
    tk_kind_copies++;
    return true;
}

bool tk_kind_copy_done(struct tk_kind_copy *copy)
{
    struct tk_kind_why why = {""};
    if (has_failed)
        return false;
    enum tk_status status = device_of(copy)->class->copy_test(copy, &why);
    if (status == TK_FAIL)
        fail(copy, &why);
    if (status != TK_OK)
        return false;
    tk_kind_copies--;
    return true;
}
