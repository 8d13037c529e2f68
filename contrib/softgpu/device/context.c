/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts. Owns the list of all that were made; a context that has ended stays in it, because
 * clients keep its handle and get CONTEXT_DESTROYED with it. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/device/device.h"

static struct sgpu_context *contexts;
static struct sgpu_context *primaries[SGPU_DEVICES_MAX];

struct sgpu_context *sgpu_context_create(int device, unsigned flags)
{
    struct sgpu_context *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->device = device;
    c->flags = flags;
    c->id = sgpu_next_id();
    c->alive = true;
    c->next = contexts;
    contexts = c;
    return c;
}

struct sgpu_context *sgpu_context_primary(int device)
{
    if (!primaries[device]) {
        primaries[device] = sgpu_context_create(device, 0);
        if (primaries[device]) {
            primaries[device]->primary = true;
            primaries[device]->alive = false;
        }
    }
    return primaries[device];
}

int sgpu_context_retain(int device, struct sgpu_context **out)
{
    struct sgpu_context *c = sgpu_context_primary(device);

    if (!c)
        return SGPU_OUT_OF_MEMORY;
    c->retained++;
    if (!c->alive)
        c->failed = SGPU_OK;
    c->alive = true;
    *out = c;
    return SGPU_OK;
}

int sgpu_context_release(int device)
{
    struct sgpu_context *c = sgpu_context_primary(device);

    if (!c || c->retained == 0)
        return SGPU_INVALID_CONTEXT;
    if (--c->retained == 0)
        sgpu_context_end(c);
    return SGPU_OK;
}

void sgpu_context_end(struct sgpu_context *c)
{
    if (!c->alive)
        return;
    sgpu_streams_wait(c);
    c->alive = false;
    sgpu_events_end(c);
    sgpu_streams_end(c);
    sgpu_memory_end(c);
    c->peers = 0;
}

bool sgpu_context_known(const struct sgpu_context *c)
{
    for (const struct sgpu_context *at = contexts; at; at = at->next)
        if (at == c)
            return true;
    return false;
}

int sgpu_context_check(struct sgpu_context *c)
{
    int status;

    if (!c->alive)
        return SGPU_CONTEXT_DESTROYED;
    status = sgpu_device_check(c->device);
    return status != SGPU_OK ? status : c->failed;
}
