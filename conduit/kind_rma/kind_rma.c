/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets with device memory: finds the path, then posts the transfer as any other, or starts
 * it piece by piece; and the work after polls, which goes on with pieces. Owns what was said of
 * paths; guarded by the lock of the room. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "kind_rma/kind_open.h"
#include "kind_rma/kind_rma_private.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "transport/neighbour.h"

/* ---- which path ---- */

static enum tk_kind_way way(void)
{
    const char *text = tk_settings.mk_way;
    return !strcmp(text, "staged") ? TK_KIND_WAY_STAGED : TK_KIND_WAY_AUTO;
}

static enum tk_kind_local local_of(const struct tk_kind_transfer *k)
{
    if (!k->local)
        return TK_KIND_LOCAL_HOST;
    return tk_kind_hca_moves(k) ? TK_KIND_LOCAL_REGISTERED : TK_KIND_LOCAL_DEVICE;
}

static enum tk_kind_remote host_of_neighbour(const struct tk_kind_transfer *k,
                                             struct tk_kind_plan *plan)
{
    plan->shift = tk_neighbour_addr_offset(k->t.peer, k->t.rma.endpoint);
    return plan->shift == tk_unmapped ? TK_KIND_REMOTE_HOST : TK_KIND_REMOTE_MAPPED;
}

/* The client may destroy the kinds of this device meanwhile: as far as it knows, the device takes
 * no part in the transfer. */
static enum tk_kind_remote device_of_neighbour(const struct tk_kind_transfer *k,
                                               struct tk_kind_plan *plan,
                                               const struct tk_kind_ends *ends)
{
    const struct tk_bound bound = tk_bound_of(k->t.peer->rank, k->t.rma.endpoint);
    if (!k->remote->has_ipc || ends->way == TK_KIND_WAY_STAGED || ends->are_two_classes)
        return TK_KIND_REMOTE_DEVICE;
    tk_lock(&tk_kind_lock);
    const struct tk_kind_mapping *mapping = tk_kind_ipc_find(k->t.peer->rank, &bound);
    if (mapping) {
        plan->shift = mapping->offset;
        plan->remote_device = mapping->device;
        tk_kind_device_hold(mapping->device);
    }
    tk_unlock(&tk_kind_lock);
    return mapping ? TK_KIND_REMOTE_IPC : TK_KIND_REMOTE_DEVICE;
}

static enum tk_kind_remote ourselves(const struct tk_kind_transfer *k, struct tk_kind_plan *plan)
{
    const struct tk_kind_memory *memory = k->remote ? tk_kind_memory_of(k->t.rma.endpoint) : NULL;
    plan->shift = 0;
    plan->remote_device = memory ? memory->device : NULL;
    return TK_KIND_REMOTE_MAPPED;
}

static enum tk_kind_remote remote_of(const struct tk_kind_transfer *k, struct tk_kind_plan *plan,
                                     const struct tk_kind_ends *ends)
{
    plan->shift = tk_unmapped;
    plan->remote_device = NULL;
    if (ends->reach == TK_REACH_SELF)
        return ourselves(k, plan);
    if (ends->reach == TK_REACH_NEIGHBOUR)
        return k->remote ? device_of_neighbour(k, plan, ends) : host_of_neighbour(k, plan);
    if (k->remote)
        return k->remote->is_registered ? TK_KIND_REMOTE_KEYS : TK_KIND_REMOTE_DEVICE;
    return tk_is_on_demand && k->t.rma.endpoint == 0 ? TK_KIND_REMOTE_ON_DEMAND
                                                     : TK_KIND_REMOTE_HOST;
}

/* Logged once for each path and for each kind of owner of the memory. */
static void say_path(enum tk_reach reach, enum tk_kind_path path)
{
    static const char *const whose[] = {[TK_REACH_NETWORK] = "over the network",
                                        [TK_REACH_NEIGHBOUR] = "with neighbours",
                                        [TK_REACH_SELF] = "within this process"};
    static const char *const how[] = {
        [TK_KIND_BY_COPY] = "copied by a device",
        [TK_KIND_BY_IPC] = "copied by a device into memory that IPC has mapped",
        [TK_KIND_BY_HCA] = "by the HCA, from and to where they lie",
        [TK_KIND_BY_SLOT] = "through staging memory here",
        [TK_KIND_BY_TARGET] = "through staging memory of the target, whose CPU takes part"};
    static bool said[tk_kind_paths][TK_REACH_SELF + 1];
    tk_lock(&tk_kind_lock);
    bool is_new = !said[path][reach];
    said[path][reach] = true;
    tk_unlock(&tk_kind_lock);
    if (is_new)
        tk_log_info("transfers of device memory %s travel %s", whose[reach], how[path]);
}

static bool are_two_classes(const struct tk_kind_transfer *k)
{
    return k->local && k->remote && k->local->device->class->gex_class != k->remote->gex_class;
}

static struct tk_kind_plan plan_of(struct tk_kind_transfer *k)
{
    static const enum tk_path_counted counted[] = {[TK_KIND_BY_COPY] = tk_path_kind_copy,
                                                   [TK_KIND_BY_IPC] = tk_path_kind_ipc,
                                                   [TK_KIND_BY_HCA] = tk_path_kind_hca,
                                                   [TK_KIND_BY_SLOT] = tk_path_kind_slot,
                                                   [TK_KIND_BY_TARGET] = tk_path_kind_target};
    struct tk_kind_plan plan;
    struct tk_rma *rma = &k->t.rma;
    struct tk_kind_ends ends = {.reach = tk_peer_transport(k->t.peer)->reach,
                                .local = local_of(k),
                                .way = way(),
                                .are_two_classes = are_two_classes(k),
                                .is_put = rma->is_put,
                                .nbytes = rma->nbytes};
    ends.remote = remote_of(k, &plan, &ends);
    plan.path = tk_kind_path(&ends);
    rma->is_on_device = k->local != NULL;
    rma->wants_flush = rma->is_put && k->remote && k->remote->needs_flush;
    if (tk_settings.verboseenv)
        say_path(ends.reach, plan.path);
    tk_count_transfer(counted[plan.path], tk_counter_kind_bytes,
                      rma->nbytes * tk_max(k->rows.count, 1));
    return plan;
}

/* ---- progress ---- */

/* No event reports that a device's copy is over, or that a transport has space again. */
static void note_lack(bool lacks)
{
    static bool noted;
    lacks |= tk_kind_copies > 0;
    if (lacks != noted)
        tk_counter_add(&tk_deferred_work_lacks_space, lacks ? 1 : -1);
    noted = lacks;
}

static bool kind_progress(void)
{
    bool lacks = false;
    if (!tk_trylock(&tk_kind_lock))
        return false;
    bool any = tk_kind_pieces_progress(&lacks);
    any |= tk_kind_serve_progress(&lacks);
    note_lack(lacks);
    tk_unlock(&tk_kind_lock);
    return any;
}

static enum tk_status begin(const struct tk_kind_transfer *k, const struct tk_kind_plan *plan,
                            struct tk_op *op, tk_counter_t *sources)
{
    tk_lock(&tk_kind_lock);
    enum tk_status status = tk_kind_transfer_begin(k, plan, op, sources);
    note_lack(true);
    tk_unlock(&tk_kind_lock);
    return status;
}

/* ---- calls ---- */

/* Like a transfer of host memory: it is complete when the HCA has moved the data. */
static bool is_posted_whole(const struct tk_kind_transfer *k, const struct tk_kind_plan *plan)
{
    return plan->path == TK_KIND_BY_HCA && !tk_kind_wants_flush_here(k);
}

int tk_kind_blocking(struct tk_kind_transfer *k)
{
    struct tk_op op;
    if (k->t.rma.nbytes == 0)
        return 0;
    const struct tk_kind_plan plan = plan_of(k);
    if (is_posted_whole(k, &plan))
        return tk_transfer_blocking(&k->t);
    tk_op_init(&op);
    if (begin(k, &plan, &op, NULL) != TK_OK)
        return 1;
    tk_wait_done(&op);
    return 0;
}

gex_Event_t tk_kind_start(struct tk_kind_transfer *k, gex_Event_t *lc_opt)
{
    if (k->t.rma.nbytes == 0)
        return tk_transfer_start(&k->t, lc_opt);
    const struct tk_kind_plan plan = plan_of(k);
    if (is_posted_whole(k, &plan))
        return tk_transfer_start(&k->t, lc_opt);
    struct tk_op *op = tk_op_take();
    k->t.rma.copy_source = lc_opt == GEX_EVENT_NOW;
    if (begin(k, &plan, op, lc_opt == GEX_EVENT_DEFER ? NULL : &op->sources) != TK_OK) {
        tk_op_give(op);
        return GEX_EVENT_NO_OP;
    }
    if (lc_opt == GEX_EVENT_NOW)
        tk_wait_source_free(op);
    else if (lc_opt != GEX_EVENT_DEFER && (*lc_opt = tk_leaf_of(op)) != GEX_EVENT_INVALID)
        return (gex_Event_t)op; /* even if complete by now: the leaf is valid as long as its root */
    return tk_event_of(op);
}

int tk_kind_implicit(struct tk_kind_transfer *k, gex_Event_t *lc_opt)
{
    struct tk_op mine;
    if (k->t.rma.nbytes == 0)
        return 0;
    const struct tk_kind_plan plan = plan_of(k);
    if (is_posted_whole(k, &plan))
        return tk_transfer_implicit(&k->t, lc_opt);
    struct tk_op *op = tk_nbi_op(k->t.rma.is_put ? TK_NBI_PUT : TK_NBI_GET);
    tk_counter_t *sources = lc_opt == GEX_EVENT_DEFER ? NULL
                            : lc_opt == GEX_EVENT_NOW ? &mine.sources
                                                      : &op->sources;
    tk_op_init(&mine);
    k->t.rma.copy_source = lc_opt == GEX_EVENT_NOW;
    if (begin(k, &plan, op, sources) != TK_OK)
        return 1;
    tk_wait_source_free(&mine);
    return 0;
}

bool tk_kind_has_space(void)
{
    tk_lock(&tk_kind_lock);
    bool has = tk_kind_pieces_has_space();
    tk_unlock(&tk_kind_lock);
    return has;
}

/* A larger row is worth a transfer of its own: its copies take longer than starting them does. */
size_t tk_kind_row_max(void)
{
    enum { row_max = 16 << 10 };
    return tk_min(row_max, tk_kind_slot_size());
}

void tk_kind_post(struct tk_kind_transfer *k, struct tk_op *op, tk_counter_t *sources)
{
    const struct tk_kind_plan plan = plan_of(k);
    k->t.rma.immediate = k->t.rma.copy_source = false;
    begin(k, &plan, op, k->t.rma.is_put ? sources : NULL);
}

/* ---- start and end ---- */

static void kind_asked(struct tk_arrival *arrival)
{
    tk_lock(&tk_kind_lock);
    tk_kind_asked(arrival);
    tk_unlock(&tk_kind_lock);
}

static void kind_answered(struct tk_arrival *arrival)
{
    tk_lock(&tk_kind_lock);
    tk_kind_answered(arrival);
    tk_unlock(&tk_kind_lock);
}

static enum tk_status open_staging(void)
{
    tk_lock(&tk_kind_lock);
    enum tk_status status = tk_kind_staging_open();
    if (status == TK_OK)
        status = tk_kind_serve_open();
    tk_unlock(&tk_kind_lock);
    return status;
}

void tk_kind_rma_open(void)
{
    tk_staging.open = open_staging;
    tk_staging.bound = tk_kind_staging_bound;
    tk_internal_register_whole(TK_HANDLER_KIND_ASK, kind_asked);
    tk_internal_register_whole(TK_HANDLER_KIND_ANSWER, kind_answered);
    tk_progress_add(kind_progress);
}

void tk_kind_rma_put(struct tk_kind_device *device)
{
    tk_lock(&tk_kind_lock);
    tk_kind_release(device);
    tk_kind_device_put(device);
    tk_unlock(&tk_kind_lock);
}
