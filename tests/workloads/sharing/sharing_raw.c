/* SPDX-License-Identifier: BSD-3-Clause */
/* sharing over raw verbs: queue pairs that a group of threads posts to and polls for. A thread that
 * takes a completion from a queue marks the slot of the thread that it belongs to, and gives the
 * queue pair's credit back; a post needs a credit. Owns connections and sharers; a connection
 * belongs to its group, a sharer to the thread of its flood, but for what is atomic. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sharing_raw.h"

enum {
    reap_max = 16,
    combine_max = 32,
    inline_most = 512,
    thread_bits = 16,
    slot_bits = 16,
    generation_bits = 32
};

/* The data that the other side needs. */
struct end {
    trunkline_address_t address;
    uint32_t key; /* of the segment in this connection's domain */
};

static struct connection *connections; /* a server's, or all ends at a client */
static struct sharer *sharers;
static uint32_t count;
static bool is_inline_everywhere = true;

static bool is_server(void)
{
    return wl_job.me < (gex_Rank_t)sharing.servers;
}

static uint32_t each(void)
{
    return sharing_each((uint32_t)sharing.qps, sharing_clients);
}

/* ---- Making and connecting */

/* Which of the rails' control blocks, when connections have none of their own. */
static unsigned block_of(unsigned rail)
{
    for (unsigned first = 0; sharing.cb == sharing_cb_one && first < rail; first++)
        if (rma_rails.rail[first].context == rma_rails.rail[rail].context)
            return first;
    return rail;
}

static bool open_connection(struct connection *c)
{
    char name[64];
    const trunkline_rail_t *rail = &rma_rails.rail[c->rail];
    if (is_server())
        snprintf(name, sizeof(name), "server-%u-%u", (unsigned)wl_job.me, c->number);
    else
        snprintf(name, sizeof(name), "client-%u-%u-%u", c->peer, (unsigned)wl_job.me, c->number);
    if (is_server() && sharing.cb == sharing_cb_qp) {
        if (!rma_block_open(&c->block, c->rail, true))
            return false;
    } else {
        c->block = (struct rma_block){rma_rails.domains[block_of(c->rail)],
                                      rma_rails.memory[block_of(c->rail)]};
    }
    const trunkline_qp_options_t options = {
        .name = name,
        .type = sharing.transport ? IBV_QPT_UC : IBV_QPT_RC,
        .send_depth = (uint32_t)sharing.sq_depth,
        .inline_size = sharing.size < inline_most ? (uint32_t)sharing.size : inline_most,
        .signal_all = 1};
    if (trunkline_qp_open(&c->qp, &c->block.domain, rail, &options))
        return false;
    c->inline_size = c->qp.inline_size;
    is_inline_everywhere &= (uint32_t)sharing.size <= c->inline_size;
    return true;
}

/* Connection i of a server, at the server, or the client's end of it. */
static void place(struct connection *c, gex_Rank_t server, uint32_t i)
{
    struct sharing_place where =
        sharing_map(i, (uint32_t)sharing.qps, sharing_clients, rma_rails.count);
    c->number = i;
    c->rail = where.rail;
    c->peer = is_server() ? (gex_Rank_t)sharing.servers + where.client : server;
    c->group = sharing_group(i, (uint32_t)sharing.threads, (uint32_t)sharing.degree);
    atomic_init(&c->credits, (int)sharing.sq_depth);
    atomic_init(&c->least_credits, (int)sharing.sq_depth);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_spin_init(&c->spin, PTHREAD_PROCESS_PRIVATE);
}

static void refuse_what_is_too_much(void)
{
    const trunkline_rail_t *rail = rma_rails.rail;
    uint32_t at_client = (uint32_t)sharing.servers * each();
    uint32_t most = at_client > (uint32_t)sharing.qps ? at_client : (uint32_t)sharing.qps;
    if (sharing.sq_depth > rail->limits.max_qp_wr)
        wl_job_refuse(wl_exit_bad, "--sq-depth %lld: %s allows %d", (long long)sharing.sq_depth,
                      rail->name, rail->limits.max_qp_wr);
    if (most > (uint32_t)rail->limits.max_qp)
        wl_job_refuse(wl_exit_bad, "%u queue pairs in a process, %s has %d", most, rail->name,
                      rail->limits.max_qp);
}

/* A server shares its connections in order, a client those with server 0, then with 1, ... */
static void connect_all(void)
{
    uint32_t at_client = (uint32_t)sharing.servers * each();
    uint32_t room = at_client > (uint32_t)sharing.qps ? at_client : (uint32_t)sharing.qps;
    struct end *mine = calloc(room, sizeof(*mine));
    struct end *all = calloc((size_t)room * wl_job.size, sizeof(*all));
    bool good = true;
    if (!mine || !all)
        wl_job_die("no memory for addresses of %u connections", room);
    for (uint32_t n = 0; n < count; n++)
        mine[n] = (struct end){connections[n].qp.address, connections[n].block.memory->rkey};
    rma_rails_share(mine, all, room * sizeof(*mine));
    for (uint32_t n = 0; good && n < count; n++) {
        struct connection *c = &connections[n];
        uint32_t there = is_server() ? wl_job.me * each() + c->number % each() : c->number;
        const struct end *other = &all[(size_t)c->peer * room + there];
        good = !trunkline_qp_connect(&c->qp, &other->address);
        c->remote = (uintptr_t)wl_job.segments[c->peer];
        c->key = other->key;
    }
    rma_rails_agree(good, "connections");
    free(mine);
    free(all);
}

static void *make(size_t number, size_t size)
{
    void *memory = calloc(number, size);
    if (!memory)
        wl_job_die("no memory for %zu connections", number);
    return memory;
}

void sharing_raw_open(void)
{
    bool good = true;
    rma_rails_open(sharing.ports, sharing.base_port);
    refuse_what_is_too_much();
    rma_rails_register();
    count = is_server() ? (uint32_t)sharing.qps : (uint32_t)sharing.servers * each();
    connections = make(count, sizeof(*connections));
    for (uint32_t n = 0; n < count; n++) {
        uint32_t first = is_server() ? 0 : (wl_job.me - (uint32_t)sharing.servers) * each();
        place(&connections[n], n / each(), is_server() ? n : first + n % each());
    }
    for (uint32_t n = 0; good && n < count; n++)
        good = open_connection(&connections[n]);
    rma_rails_agree(good, "queue pairs");
    connect_all();
    if (!is_server())
        return;
    sharers = make((size_t)sharing.threads, sizeof(*sharers));
    for (uint32_t t = 0; t < (uint32_t)sharing.threads; t++) {
        sharers[t].thread = t;
        sharers[t].slots = make((size_t)sharing.window, sizeof(*sharers[t].slots));
    }
}

/* The other ends are no longer in use. */
void sharing_raw_close(void)
{
    for (uint32_t n = 0; n < count; n++) {
        struct connection *c = &connections[n];
        trunkline_qp_close(&c->qp);
        if (is_server() && sharing.cb == sharing_cb_qp) {
            ibv_dereg_mr(c->block.memory);
            trunkline_domain_close(&c->block.domain);
        }
    }
}

/* ---- Locks */

static void lock(struct connection *c)
{
    if (sharing.lock == sharing_lock_mutex)
        pthread_mutex_lock(&c->mutex);
    else if (sharing.lock == sharing_lock_spin)
        pthread_spin_lock(&c->spin);
}

static void unlock(struct connection *c)
{
    if (sharing.lock == sharing_lock_mutex)
        pthread_mutex_unlock(&c->mutex);
    else if (sharing.lock == sharing_lock_spin)
        pthread_spin_unlock(&c->spin);
}

/* ---- Completion */

/* The completion belongs to the thread that posted, not to the one that polled it. */
static void route(struct rma_flood *f, struct connection *c, const struct ibv_wc *wc)
{
    struct sharer *me = f->own, *owner = &sharers[wc->wr_id >> (slot_bits + generation_bits)];
    struct share_slot *slot = &owner->slots[wc->wr_id >> generation_bits & 0xffff];
    uint32_t generation = (uint32_t)wc->wr_id;
    if (wc->status != IBV_WC_SUCCESS)
        rma_rails_broken(&c->qp, wc, c->peer);
    f->cqes++;
    me->cost.foreign += owner != me || wl_inject(&f->injection, sharing_misown);
    if (atomic_load_explicit(&slot->posted, memory_order_relaxed) != generation ||
        atomic_load_explicit(&slot->connection, memory_order_relaxed) != c->number ||
        atomic_load_explicit(&slot->done, memory_order_relaxed) == generation)
        rma_flood_fail(f, rma_account,
                       "%s: thread %u's operation %u of a slot is complete, which is not under way "
                       "there",
                       c->qp.name, owner->thread, generation);
    atomic_store_explicit(&slot->done, generation, memory_order_release);
    if (!wl_inject(&f->injection, sharing_lose_credit))
        atomic_fetch_add_explicit(&c->credits, 1, memory_order_release);
}

static int take(struct connection *c, struct ibv_wc *wcs, int most)
{
    lock(c);
    int taken = ibv_poll_cq(c->qp.send_cq, most, wcs);
    unlock(c);
    if (taken < 0)
        wl_job_die("%s: its completion queue can't be polled", c->qp.name);
    return taken;
}

static void poll(struct rma_flood *f, struct connection *c)
{
    struct ibv_wc wcs[reap_max];
    uint64_t since = rma_lap_begin(f);
    int taken = take(c, wcs, reap_max);
    since = rma_lap(f, rma_polling, since);
    for (int i = 0; i < taken; i++)
        route(f, c, &wcs[i]);
    if (taken)
        rma_lap(f, rma_routing, since);
}

/* As in the original: any completion of the queue counts as mine. */
static bool steal(struct rma_flood *f, struct connection *c)
{
    struct ibv_wc wc;
    struct sharer *s = f->own;
    if (take(c, &wc, 1) == 0)
        return false;
    if (wc.status != IBV_WC_SUCCESS)
        rma_rails_broken(&c->qp, &wc, c->peer);
    f->cqes++;
    s->cost.foreign += wc.wr_id >> (slot_bits + generation_bits) != s->thread;
    atomic_fetch_add_explicit(&c->credits, 1, memory_order_release);
    return true;
}

static bool is_done(struct rma_flood *f, const struct rma_slot *slot)
{
    struct sharer *s = f->own;
    struct share_slot *mine = &s->slots[slot->number % (uint64_t)sharing.window];
    return atomic_load_explicit(&mine->done, memory_order_acquire) == (uint32_t)slot->ticket;
}

static bool done(struct rma_flood *f, struct rma_slot *slot)
{
    struct connection *c = slot->target->line;
    if (sharing.route)
        return steal(f, c);
    if (is_done(f, slot))
        return true;
    poll(f, c);
    return is_done(f, slot);
}

/* ---- Posting */

static void ring(struct rma_flood *f, struct connection *c, struct ibv_send_wr *first)
{
    struct ibv_send_wr *bad;
    int error = ibv_post_send(c->qp.qp, first, &bad);
    if (error)
        wl_job_die("%s: a request can't be posted: %s", c->qp.name, strerror(error));
    f->doorbells++;
}

/* The newest is on top; they are posted as they came. Posts copies, because the owner reuses a
 * request once it is complete, while we may still be walking along the list. */
static void ring_all(struct rma_flood *f, struct connection *c, struct request *top)
{
    struct ibv_send_wr wrs[combine_max];
    struct ibv_sge sges[combine_max];
    struct request *above = NULL;
    while (top) {
        struct request *below = top->below;
        top->below = above;
        above = top;
        top = below;
    }
    while (above) {
        int n = 0;
        for (; above && n < combine_max; above = above->below, n++) {
            wrs[n] = above->wr;
            sges[n] = above->sge;
            wrs[n].sg_list = &sges[n];
            wrs[n].next = NULL;
            if (n)
                wrs[n - 1].next = &wrs[n];
        }
        ring(f, c, wrs);
    }
}

/* Combining: a request is pushed onto the connection's list, and the holder of the lock posts the
 * list. No thread waits for the lock: its holder checks the list once more after releasing it, and
 * both orders are sequentially consistent, so one of the two threads sees a request that was pushed
 * in between. */
static void combine(struct rma_flood *f, struct connection *c, struct request *r)
{
    struct request *top = atomic_load(&c->pile);
    do
        r->below = top;
    while (!atomic_compare_exchange_weak(&c->pile, &top, r));
    while (atomic_load(&c->pile) && !atomic_exchange(&c->is_held, true)) {
        ring_all(f, c, atomic_exchange(&c->pile, NULL));
        atomic_store(&c->is_held, false);
    }
}

static void flush(struct rma_flood *f)
{
    struct sharer *s = f->own;
    struct connection *c = s->chain;
    if (!c)
        return;
    s->chain = NULL;
    uint64_t since = rma_lap_begin(f);
    lock(c);
    since = rma_lap(f, rma_locking, since);
    ring(f, c, s->first);
    rma_lap(f, rma_posting, since);
    unlock(c);
}

static void note_credits(struct connection *c, int left)
{
    int least = atomic_load_explicit(&c->least_credits, memory_order_relaxed);
    while (left < least && !atomic_compare_exchange_weak(&c->least_credits, &least, left))
        continue;
}

/* Waits if none is left; the choice does not change, so that a seed stands for one sequence of
 * operations independent of the threads' timing. */
static bool take_credit(struct rma_flood *f, struct connection *c, const struct rma_target *target)
{
    struct sharer *s = f->own;
    struct rma_patience patience = {0, 0};
    bool waited = false;
    for (;;) {
        int left = atomic_fetch_sub_explicit(&c->credits, 1, memory_order_acquire) - 1;
        if (left >= 0) {
            note_credits(c, left);
            s->cost.credit_waits += waited;
            return true;
        }
        atomic_fetch_add_explicit(&c->credits, 1, memory_order_relaxed);
        waited = true;
        flush(f);
        if (!sharing.route)
            poll(f, c);
        if (!rma_flood_wait(f, &patience, "credit for a connection", target))
            return false;
    }
}

static uint64_t id_of(const struct sharer *s, uint64_t number)
{
    uint64_t window = (uint64_t)sharing.window;
    return (uint64_t)s->thread << (slot_bits + generation_bits) |
           number % window << generation_bits | (uint32_t)(number / window + 1);
}

static void fill(struct rma_flood *f, struct request *r, const struct rma_slot *slot,
                 enum ibv_wr_opcode opcode, size_t at)
{
    struct connection *c = slot->target->line;
    const char *local = slot->local;
    bool is_inline = opcode == IBV_WR_RDMA_WRITE && f->memory->size <= c->inline_size;
    if (sharing.dst)
        local =
            wl_job.segment + rma_at_local(f->memory, 0, (size_t)slot->number % f->memory->window);
    r->sge = (struct ibv_sge){(uintptr_t)local, (uint32_t)f->memory->size, c->block.memory->lkey};
    r->wr = (struct ibv_send_wr){.wr_id = id_of(f->own, slot->number),
                                 .sg_list = &r->sge,
                                 .num_sge = 1,
                                 .opcode = opcode,
                                 .send_flags = is_inline ? IBV_SEND_INLINE : 0};
    r->wr.wr.rdma.remote_addr = c->remote + at;
    r->wr.wr.rdma.rkey = c->key;
}

/* With a fault two operations change their identities: the first is held back until the next one
 * over another connection. */
static void exchange(struct rma_flood *f, struct connection *c, struct request *r)
{
    struct sharer *s = f->own;
    if (s->is_armed && s->chain && s->chain != c) {
        uint64_t id = s->first->wr_id;
        s->first->wr_id = r->wr.wr_id;
        r->wr.wr_id = id;
        s->is_armed = false;
        flush(f);
    }
    s->is_armed |= wl_inject(&f->injection, sharing_swap);
}

static void chain(struct rma_flood *f, struct connection *c, struct request *r)
{
    struct sharer *s = f->own;
    exchange(f, c, r);
    if (s->chain)
        s->last->next = &r->wr;
    else
        s->first = &r->wr;
    s->chain = c;
    s->last = &r->wr;
    if (++s->chained % f->batch == 0 && !s->is_armed)
        flush(f);
}

static void post(struct rma_flood *f, struct rma_slot *slot, enum ibv_wr_opcode opcode, size_t at)
{
    struct sharer *s = f->own;
    struct connection *c = slot->target->line;
    struct share_slot *mine = &s->slots[slot->number % (uint64_t)sharing.window];
    if (c->group != s->thread / (uint32_t)sharing.degree)
        s->cost.strangers++;
    if (!take_credit(f, c, slot->target))
        return;
    slot->ticket = (uint32_t)id_of(s, slot->number);
    atomic_store_explicit(&mine->connection, c->number, memory_order_relaxed);
    atomic_store_explicit(&mine->posted, (uint32_t)slot->ticket, memory_order_relaxed);
    fill(f, &mine->request, slot, opcode, at);
    if (sharing.lock == sharing_lock_combining) {
        uint64_t since = rma_lap_begin(f);
        combine(f, c, &mine->request);
        rma_lap(f, rma_posting, since);
    } else {
        chain(f, c, &mine->request);
    }
}

static void start_read(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    post(f, slot, IBV_WR_RDMA_READ, at);
}

static void start_write(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    post(f, slot, IBV_WR_RDMA_WRITE, at);
}

static const struct rma_path path = {
    .read = start_read, .write = start_write, .flush = flush, .done = done};

/* ---- For the workload */

void sharing_raw_bind(struct rma_flood *flood)
{
    struct sharer *s = &sharers[flood->thread];
    memset(s->slots, 0, (size_t)sharing.window * sizeof(*s->slots));
    s->cost = (struct sharing_cost){.foreign = 0};
    flood->path = &path;
    flood->own = s;
    flood->batch = (unsigned)sharing.postlist;
    flood->is_untimed = sharing.route != 0;
}

void sharing_raw_target(struct rma_target *target, uint32_t i)
{
    target->line = &connections[i];
    target->rail = connections[i].rail;
}

bool sharing_raw_inline(void)
{
    return is_inline_everywhere;
}

const struct sharing_cost *sharing_raw_cost(uint32_t thread)
{
    return &sharers[thread].cost;
}

/* H4, when nothing is under way. */
void sharing_raw_check(void)
{
    for (uint32_t n = 0; is_server() && n < count; n++) {
        int left = atomic_load(&connections[n].credits);
        int least = atomic_load(&connections[n].least_credits);
        if (left != (int)sharing.sq_depth || least < 0)
            sharing_fail(sharing_h4,
                         "%s has %d credits at the end, %lld at the beginning, %d at least",
                         connections[n].qp.name, left, (long long)sharing.sq_depth, least);
    }
}

void sharing_raw_greet(uint32_t n, char *local, uint64_t hash, size_t at)
{
    struct connection *c = &connections[n];
    rma_rails_put(&c->qp, c->peer, c->block.memory, local, hash, c->remote + at, c->key,
                  sharing.common.timeout_ms);
}
