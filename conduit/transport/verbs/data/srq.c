/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See srq.h. Owns struct tk_srq of each device. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/device_events.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs_state.h"

/* ---- choosing ---- */

static struct ibv_device_attr least_device(void)
{
    struct ibv_device_attr least = {.max_srq = 1, .max_srq_wr = 1 << 30};
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct ibv_device_attr attr = {.max_srq = 0};
        if (ibv_query_device(tk_verbs.rails[i].context, &attr) != 0)
            attr.max_srq = 0;
        least.max_srq = attr.max_srq < least.max_srq ? attr.max_srq : least.max_srq;
        least.max_srq_wr = attr.max_srq_wr < least.max_srq_wr ? attr.max_srq_wr : least.max_srq_wr;
    }
    return least;
}

/* Reports only if a setting asks for shared queues, not if the library decides. */
static bool is_asked_for(void)
{
    return tk_settings.use_srq > 0 && tk_peers.me == 0;
}

static const char *refusal(struct tk_loan_input *input, uint32_t conns)
{
    struct ibv_device_attr attr = least_device();
    struct tk_loan_plan plan;
    bool fits = tk_verbs_srq_fits(input, (int)conns, attr.max_srq_wr, &plan);
    if (attr.max_srq < 1 || !fits)
        return "the device has none, or too small ones";
    if (tk_verbs.failover_enabled && !tk_last_wqe_comes())
        return "a device does not report that a queue pair has received its last "
               "(IBV_EVENT_QP_LAST_WQE_REACHED), which failover between ports needs "
               "(GASNET_IBV_FAILOVER=0 does without)";
    tk_verbs.srq_plan = plan;
    if (tk_settings.use_srq > 0 && tk_settings.rbuf_count > 0 &&
        tk_settings.rbuf_count < input->buffers)
        tk_verbs.recv_min = (uint32_t)input->buffers;
    return NULL;
}

void tk_srq_choose(uint32_t peers, int credits_total)
{
    uint32_t conns = tk_verbs_peers_at_once(peers, tk_verbs.conns_pp, tk_verbs.is_static);
    struct tk_loan_input input = {
        .conns = (int)conns,
        .credits_pp = tk_verbs.credits_pp,
        .credits_total = credits_total,
        .notices = tk_srq_notices(tk_verbs.conns_pp, tk_verbs.failover_enabled, tk_cm_greets()),
        .held = (int)tk_verbs_spares(TK_THREADED),
        .bounded = tk_srq_bounded(tk_peers.size, tk_verbs.failover_enabled)};
    if (peers == 0 || !tk_verbs_srq_wish(&input, tk_peers.size))
        return;
    const char *why = refusal(&input, conns);
    if (why && is_asked_for())
        tk_log_warn("GASNET_USE_SRQ=%lld: no shared receive queues, because %s",
                    (long long)tk_settings.use_srq, why);
}

/* ---- opening ---- */

static struct tk_rail *first_rail(const struct tk_device *device)
{
    struct tk_rail *rail = tk_verbs.rails;
    while (rail->device != device)
        rail++;
    return rail;
}

static struct tk_srq_table *table_make(uint32_t size)
{
    struct tk_srq_table *table = calloc(1, tk_srq_table_bytes(size));
    if (table)
        table->mask = size - 1;
    return table;
}

static struct tk_srq *make(void)
{
    struct tk_srq *srq = aligned_alloc(TK_CACHE_LINE, sizeof(*srq));
    if (!srq)
        return NULL;
    memset(srq, 0, sizeof(*srq));
    tk_lock_init(&srq->lock);
    tk_lock_init(&srq->take_lock);
    srq->lender = (struct tk_lender){.base = tk_verbs.srq_plan.base,
                                     .most = tk_verbs.credits_pp,
                                     .notices = tk_verbs.srq_plan.notices};
    srq->table = table_make(tk_srq_table_first);
    return srq;
}

static enum tk_status srq_fit(struct tk_device *device, int buffers)
{
    struct tk_srq *srq = device->srq;
    struct tk_rail *rail = first_rail(device);
    if (buffers <= srq->buffers)
        return TK_OK;
    if (tk_recv_pool_fit(rail, tk_verbs_shared_pool((unsigned)buffers, tk_recv_size())) != TK_OK)
        return TK_FAIL;
    for (; srq->buffers < buffers; srq->buffers++) {
        struct tk_buffer *buffer = tk_recv_buffer_take(rail);
        if (!buffer)
            return TK_FAIL;
        tk_srq_give(srq, buffer);
    }
    return TK_OK;
}

static void set_capacity(struct tk_srq *srq, int capacity)
{
    tk_lock(&srq->lock);
    srq->lender.capacity = (int)tk_max((size_t)capacity, (size_t)srq->lender.capacity);
    tk_unlock(&srq->lock);
}

/* True if messages come over all connections to a peer, not only over the primary. */
static bool all_receive(void)
{
    return tk_verbs.failover_enabled || tk_cm_greets();
}

/* The number of peers that may send to this device: all with a static job, otherwise those
 * connected now. */
static uint32_t peers_on(const struct tk_device *device)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        const struct tk_rail *rail = &tk_verbs.rails[i];
        if (rail->device == device || all_receive())
            count += tk_verbs.is_static ? rail->peers : rail->primaries;
    }
    return count;
}

static struct tk_loan_stock stock_of(const struct tk_device *device)
{
    return tk_loan_stock(&tk_verbs.srq_plan, (int)peers_on(device));
}

/* Raises the capacity only when all devices have the buffers for it. */
enum tk_status tk_srqs_fit(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (srq_fit(device, stock_of(device).buffers) != TK_OK)
            return TK_FAIL;
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        set_capacity(device->srq, stock_of(device).capacity);
    return TK_OK;
}

static enum tk_status srq_open(struct tk_device *device)
{
    struct tk_srq *srq = device->srq = make();
    if (!srq || !srq->table) {
        tk_log_error("out of memory for the connections of a shared receive queue");
        return TK_FAIL;
    }
    return tk_recv_pool_open(first_rail(device), 0);
}

static struct ibv_srq *create_queue(struct tk_device *device, uint32_t count)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = count, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = device->pd,
    };
    if (device->xrcd) {
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type = IBV_SRQT_XRC;
        attr.xrcd = device->xrcd;
        attr.cq = device->recv_cq;
    }
    return ibv_create_srq_ex(device->context, &attr);
}

static enum tk_status srq_make(struct tk_device *device)
{
    uint32_t conns = tk_verbs_peers_at_once(tk_verbs.peers, tk_verbs.conns_pp, tk_verbs.is_static);
    uint32_t count = (uint32_t)tk_loan_stock(&tk_verbs.srq_plan, (int)conns).buffers;
    device->srq->queue = create_queue(device, count);
    if (device->srq->queue)
        return TK_OK;
    tk_log_error("%s: no shared receive queue of %u buffers: %s; lower GASNET_RBUF_COUNT, or "
                 "set GASNET_USE_SRQ=0",
                 ibv_get_device_name(device->context->device), count, strerror(errno));
    return TK_FAIL;
}

enum tk_status tk_srqs_make(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (srq_make(device) != TK_OK)
            return TK_FAIL;
    return tk_srqs_fit();
}

enum tk_status tk_srqs_open(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (srq_open(device) != TK_OK)
            return TK_FAIL;
    return tk_xrc_is_offered() ? TK_OK : tk_srqs_make();
}

void tk_srq_close(struct tk_device *device)
{
    struct tk_srq *srq = device->srq;
    if (srq && srq->queue)
        ibv_destroy_srq(srq->queue);
    while (srq && srq->table) {
        struct tk_srq_table *table = srq->table;
        srq->table = table->before;
        free(table);
    }
    free(srq);
    device->srq = NULL;
}

/* ---- connections ---- */

static struct tk_srq *srq_of(const struct tk_conn *conn)
{
    return tk_rail_of(conn)->device->srq;
}

struct tk_srq *tk_srq_lender(const struct tk_conn *conn)
{
    return all_receive() ? tk_verbs.device.srq : srq_of(conn);
}

enum tk_reserve_result tk_srq_reserve(struct tk_conn *conns, struct tk_conn *primary)
{
    struct tk_srq *srq = tk_srq_lender(primary);
    struct tk_loan *loan = calloc(1, sizeof(*loan));
    if (!loan)
        tk_panic("out of memory for a connection (%zu bytes)", sizeof(*loan));
    tk_lock(&srq->lock);
    enum tk_reserve_result answer = tk_lender_reserve(&srq->lender, &loan->account);
    tk_unlock(&srq->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp && answer == TK_RESERVE_OK; k++)
        if (&conns[k] == primary || all_receive()) {
            /* with the lock: another thread may use the entry of an earlier connection */
            tk_lock(&conns[k].lock);
            conns[k].loan = loan;
            tk_unlock(&conns[k].lock);
            loan->conns++;
        }
    if (answer != TK_RESERVE_OK)
        free(loan);
    return answer;
}

static bool is_taken(const struct tk_srq_entry *entry, uint32_t qp)
{
    return entry->conn && !(entry->conn == tk_verbs.nobody && entry->qp == qp);
}

/* Uses the first free entry. The entry of a connection that left stays occupied, so that searches
 * find the entries behind it. */
static void enter(struct tk_srq_table *table, uint32_t qp, struct tk_conn *conn)
{
    uint32_t at = qp;
    while (is_taken(&table->entries[at & table->mask], qp))
        at++;
    struct tk_srq_entry *entry = &table->entries[at & table->mask];
    __atomic_store_n(&entry->qp, qp, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->conn, conn, __ATOMIC_RELEASE);
}

static void widen(struct tk_srq *srq)
{
    const struct tk_srq_table *old = srq->table;
    struct tk_srq_table *table = table_make(2 * (old->mask + 1));
    if (!table)
        tk_panic("out of memory for a table of %u connections", old->mask + 1);
    for (uint32_t i = 0; i <= old->mask; i++)
        if (old->entries[i].conn)
            enter(table, old->entries[i].qp, old->entries[i].conn);
    table->before = srq->table;
    __atomic_store_n(&srq->table, table, __ATOMIC_RELEASE);
}

void tk_srq_join(struct tk_conn *conn)
{
    struct tk_srq *srq = srq_of(conn);
    uint32_t qp = (conn->target ? conn->target : conn->qp)->qp_num;
    tk_lock(&srq->lock);
    if (2 * ++srq->joined > srq->table->mask)
        widen(srq);
    enter(srq->table, qp, conn);
    tk_unlock(&srq->lock);
}

/* Over iWARP a greeting may have come that no poll has taken yet: so the entry of its queue pair
 * stays, with `nobody`. */
static void srq_remove(struct tk_srq *srq, const struct tk_conn *conn, uint32_t qp)
{
    struct tk_conn *left = tk_cm_greets() ? tk_verbs.nobody : NULL;
    tk_lock(&srq->lock);
    for (uint32_t i = 0; i <= srq->table->mask; i++) {
        struct tk_srq_entry *entry = &srq->table->entries[(qp + i) & srq->table->mask];
        if (entry->conn != conn)
            continue;
        __atomic_store_n(&entry->conn, left, __ATOMIC_RELEASE);
        srq->joined -= !left;
        break;
    }
    tk_unlock(&srq->lock);
}

void tk_srq_leave(struct tk_conn *conn, uint32_t qp)
{
    struct tk_loan *loan = conn->loan;
    if (!loan)
        return;
    srq_remove(srq_of(conn), conn, qp);
    conn->loan = NULL;
    if (--loan->conns > 0)
        return;
    struct tk_srq *srq = tk_srq_lender(conn);
    tk_counter_add(&tk_verbs.pending_work, -loan->is_pending);
    tk_lock(&srq->lock);
    tk_lender_release(&srq->lender, &loan->account);
    tk_unlock(&srq->lock);
    free(loan);
}

/* ---- buffers ---- */

void tk_srq_post(struct tk_srq *srq)
{
    struct ibv_recv_wr *bad;
    srq->last->next = NULL;
    int error = ibv_post_srq_recv(srq->queue, srq->first, &bad);
    if (error)
        tk_panic("ibv_post_srq_recv failed with error %d, %d buffers at once", error, srq->used);
    srq->first = srq->last = NULL;
    srq->used = 0;
}

bool tk_srq_hold(struct tk_srq *srq)
{
    tk_lock(&srq->lock);
    bool may = srq->held < tk_verbs.srq_plan.held;
    srq->held += may;
    tk_unlock(&srq->lock);
    return may;
}

void tk_srq_release(struct tk_srq *srq, struct tk_buffer *buffer)
{
    tk_srq_give(srq, buffer);
    tk_lock(&srq->lock);
    srq->held--;
    tk_unlock(&srq->lock);
}

/* ---- in a failover group ---- */

/* One thread polls at a time, except those that insist. These take the second lock too: when a
 * thread finds the queue empty, all earlier messages are counted, whichever thread took them. */
int tk_srq_take(struct tk_device *device, struct ibv_wc *wc, struct tk_conn **conn)
{
    struct tk_srq *srq = device->srq;
    bool is_alone = tk_trylock(&device->recv_cq_lock);
    if (TK_THREADED && !is_alone && !(tk_queues_insisted & TK_DEVICE_RECEIVES))
        return 0;
    tk_lock(&srq->take_lock);
    int n = ibv_poll_cq(device->recv_cq, 1, wc);
    tk_if_likely(n == 0) srq->emptied++;
    else if (n > 0)
    {
        srq->taken++;
        *conn = tk_srq_conn(srq, wc->qp_num);
        tk_if_unlikely(!*conn)
            tk_panic("a message came over queue pair %u, which is closed", wc->qp_num);
        tk_if_likely(wc->status == IBV_WC_SUCCESS) tk_count_arrived((*conn)->tx_log);
    }
    tk_unlock(&srq->take_lock);
    if (is_alone)
        tk_unlock(&device->recv_cq_lock);
    tk_if_unlikely(n < 0) tk_panic("ibv_poll_cq failed with error %d", n);
    return n;
}

bool tk_srq_is_drained(struct tk_conn *conn)
{
    const struct tk_device *device = tk_rail_of(conn)->device;
    struct tk_srq *srq = device->srq;
    struct tk_last_receive *last = &conn->tx_log->last_receive;
    if (!__atomic_load_n(&conn->has_received_last, __ATOMIC_ACQUIRE))
        return false;
    tk_lock(&srq->take_lock);
    if (!last->is_noted)
        *last = (struct tk_last_receive){
            .is_noted = true, .taken = srq->taken, .emptied = srq->emptied};
    bool is_drained =
        srq->emptied != last->emptied || srq->taken - last->taken >= (uint64_t)device->recv_cq->cqe;
    tk_unlock(&srq->take_lock);
    return is_drained;
}

/* The pointer is valid: a connection's address never changes. */
void tk_srq_last_wqe(const struct ibv_qp *qp)
{
    struct tk_conn *conn = qp->qp_context;
    if (!conn)
        return;
    __atomic_store_n(&conn->has_received_last, true, __ATOMIC_RELEASE);
    tk_counter_add(&tk_verbs.received_last, 1);
}
