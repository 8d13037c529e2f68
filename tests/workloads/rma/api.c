/* SPDX-License-Identifier: BSD-3-Clause */
/* The path over GASNet-EX: an event for each slot. Owns nothing. */
#include "config.h"

#include "flood.h"

static void *remote(const struct rma_slot *slot, size_t at)
{
    return (char *)wl_job.segments[slot->target->rank] + at;
}

static void start_read(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    uint64_t since = rma_lap_begin(f);
    slot->event = gex_RMA_GetNB(wl_job.tm, slot->local, slot->target->rank, remote(slot, at),
                                f->memory->size, 0);
    rma_lap(f, rma_posting, since);
}

static void start_write(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    uint64_t since = rma_lap_begin(f);
    slot->event = gex_RMA_PutNB(wl_job.tm, slot->target->rank, remote(slot, at), slot->local,
                                f->memory->size, GEX_EVENT_DEFER, 0);
    rma_lap(f, rma_posting, since);
}

static bool done(struct rma_flood *f, struct rma_slot *slot)
{
    uint64_t since = rma_lap_begin(f);
    bool is_done = gex_Event_Test(slot->event) == GASNET_OK;
    if (!is_done)
        gasnet_AMPoll();
    rma_lap(f, rma_polling, since);
    return is_done;
}

const struct rma_path rma_api = {.read = start_read, .write = start_write, .done = done};
