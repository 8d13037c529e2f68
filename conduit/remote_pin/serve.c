/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rank that owns the memory: serves asks, in handlers. Owns the regions that are held for
 * others, by handles; one lock. Registering takes some microseconds in which this thread serves no
 * other rank, as a client's handler might; regions come from the cache of on-demand registrations,
 * and stay there when no rank holds them any more. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "remote_pin/remote_pin_private.h"

struct loan {
    struct tk_pinned *region; /* NULL: free */
    uint32_t rank;
    uint32_t next_free;
};

static struct {
    tk_lock_t lock;
    const struct tk_transport *network; /* registers the regions */
    struct loan *loans;                 /* by handle - 1 */
    uint32_t count, lent_each;
    uint32_t free; /* handle; 0: none */
} exports = {.lock = TK_LOCK_INIT};

static _Noreturn void serve_nonsense(const struct tk_peer *from, const char *what)
{
    tk_panic(
        "rank %u (%s, pid %d) %s; the ranks of a job must be built against one version of this "
        "library",
        from->rank, from->host, from->pid, what);
}

/* ---- regions ---- */

static void take_back(const struct tk_peer *from, uint32_t handle)
{
    tk_lock(&exports.lock);
    struct loan *loan = handle <= exports.count ? &exports.loans[handle - 1] : NULL;
    struct tk_pinned *region = loan && loan->rank == from->rank ? loan->region : NULL;
    if (region) {
        loan->region = NULL;
        loan->next_free = exports.free;
        exports.free = handle;
    }
    tk_unlock(&exports.lock);
    if (!region)
        serve_nonsense(from, "gave a region up that it did not have");
    tk_firehose_put(region);
}

static uint32_t enter(const struct tk_peer *to, struct tk_pinned *region)
{
    tk_lock(&exports.lock);
    uint32_t handle = exports.free;
    if (handle) {
        struct loan *loan = &exports.loans[handle - 1];
        exports.free = loan->next_free;
        loan->region = region;
        loan->rank = to->rank;
    }
    tk_unlock(&exports.lock);
    return handle;
}

/* The keys of a region, or NULL. */
static const uint32_t *serve_lend(const struct tk_peer *to, const struct tk_ask *ask,
                                  struct tk_answer *answer)
{
    void *from = (void *)(uintptr_t)ask->from;
    size_t size = (size_t)ask->size;
    struct tk_pinned *region = tk_firehose_may_get(from, size) ? tk_firehose_get(from, size) : NULL;
    if (!region)
        return NULL;
    answer->handle = enter(to, region);
    if (!answer->handle) {
        tk_firehose_put(region);
        return NULL;
    }
    answer->base = region->base;
    answer->size = region->size;
    return exports.network->memory->remote_keys(region);
}

/* ---- asks ---- */

/* Addresses come over the wire: an error of the other rank must not access memory of this one
 * outside of its segment. */
static void serve_check_place(const struct tk_peer *from, uint64_t at, uint64_t nbytes)
{
    if (tk_is_everything || tk_area_holds(&tk_segment_area, (void *)(uintptr_t)at, (size_t)nbytes))
        return;
    tk_panic("rank %u (%s, pid %d) asks for %llu bytes at %p, which are not inside this rank's "
             "segment [%p, +%zu)",
             from->rank, from->host, from->pid, (unsigned long long)nbytes, (void *)(uintptr_t)at,
             tk_segment_area.base, tk_segment_area.size);
}

static void read_ask(const struct tk_arrival *arrival, struct tk_ask *ask)
{
    const struct tk_peer *from = arrival->peer;
    if (arrival->head->nargs != tk_ask_args)
        serve_nonsense(from, "asked in a way that makes no sense");
    memcpy(ask, arrival->head + 1, sizeof(*ask));
    if ((ask->what & TK_ASK_GET) && (ask->nbytes > tk_data_max() || (ask->what & TK_ASK_REGION)))
        serve_nonsense(from, "asked for more than an answer holds");
    if (ask->what & TK_ASK_PUT)
        serve_check_place(from, ask->at, arrival->nbytes);
    if (ask->what & TK_ASK_GET)
        serve_check_place(from, ask->at, ask->nbytes);
    if (ask->what & TK_ASK_REGION)
        serve_check_place(from, ask->from, ask->size);
}

static void serve_asked(struct tk_arrival *arrival)
{
    struct tk_ask ask;
    read_ask(arrival, &ask);
    struct tk_answer answer = {.flight = ask.flight, .hose = ask.hose, .lent = exports.lent_each};
    struct tk_internal_medium reply = {.handler = TK_HANDLER_REMOTE_ANSWER,
                                       .nargs = tk_answer_args};
    if (ask.give_up)
        take_back(arrival->peer, ask.give_up);
    if (ask.what & TK_ASK_PUT)
        memcpy((void *)(uintptr_t)ask.at, arrival->payload, arrival->nbytes);
    if (ask.what & TK_ASK_GET) {
        reply.payload = (void *)(uintptr_t)ask.at;
        reply.nbytes = ask.nbytes;
    }
    if (ask.what & TK_ASK_REGION)
        reply.payload = serve_lend(arrival->peer, &ask, &answer);
    if (answer.handle)
        reply.nbytes = tk_peers.rails * sizeof(uint32_t);
    int32_t args[tk_answer_args];
    memcpy(args, &answer, sizeof(args));
    reply.args = args;
    tk_internal_reply(arrival, &reply);
}

void tk_serve_open(void)
{
    tk_internal_register_whole(TK_HANDLER_REMOTE_ASK, serve_asked);
}

enum tk_status tk_serve_connect(const struct tk_transport *network, uint32_t askers)
{
    exports.network = network;
    uint64_t lent = tk_firehose_exported();
    exports.lent_each = (uint32_t)tk_max(1, lent / askers);
    exports.count = exports.lent_each * askers;
    exports.loans = calloc(exports.count, sizeof(*exports.loans));
    if (!exports.loans) {
        tk_log_error("out of memory for a table of %u regions; lower GASNET_FIREHOSE_R",
                     exports.count);
        return TK_FAIL;
    }
    for (uint32_t handle = exports.count; handle > 0; handle--) {
        exports.loans[handle - 1].next_free = exports.free;
        exports.free = handle;
    }
    return TK_OK;
}
