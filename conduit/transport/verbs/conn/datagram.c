/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See datagram.h. Owns the unreliable queue pairs, one for each rail, their memory, and address
 * handles. A handle is made when a datagram is sent and kept for the next one; when there are many,
 * unused ones are dropped. With the lock of demands, except where a comment says otherwise. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "common/clock.h"
#include "op/op.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/datagram_private.h"
#include "transport/verbs/conn/handshake.h"
#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs_state.h"

int tk_datagrams_received(const struct tk_device *device)
{
    int count = 0;
    for (uint32_t i = 0; tk_conns.datagrams && i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].device == device)
            count += tk_conns.datagrams->receives;
    return count;
}

/* ---- opening ---- */

static enum tk_status open_failed(const struct tk_rail *rail, const char *what, int error)
{
    const struct tk_port_address *a = &rail->address;
    tk_log_error("%s:%u: %s for datagrams failed: %s; GASNET_CONNECT_STATIC=1%s goes without",
                 a->device, a->port, what, strerror(error),
                 tk_settings.use_xrc > 0 ? " with GASNET_USE_XRC=0" : "");
    return TK_FAIL;
}

static enum tk_status open_memory(struct rail_datagrams *rd, const struct tk_rail *rail)
{
    const struct tk_datagrams *all = tk_conns.datagrams;
    size_t size = tk_datagrams_registered(all->receives, all->sends);
    rd->memory = aligned_alloc(slot_size, size);
    rd->buffers = calloc((size_t)all->receives, sizeof(*rd->buffers));
    rd->sends = calloc((size_t)all->sends, sizeof(*rd->sends));
    rd->conn = aligned_alloc(TK_CACHE_LINE, sizeof(*rd->conn));
    if (!rd->memory || !rd->buffers || !rd->sends || !rd->conn)
        return open_failed(rail, "memory", ENOMEM);
    memset(rd->memory, tk_datagram_mark, size);
    memset(rd->conn, 0, sizeof(*rd->conn));
    rd->mr = ibv_reg_mr(rail->device->pd, rd->memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (!rd->mr)
        return open_failed(rail, "registration", errno);
    for (int i = 0; i < all->sends; i++)
        rd->sends[i].datagram =
            (struct tk_datagram *)(void *)(rd->memory + (size_t)(all->receives + i) * slot_size);
    return TK_OK;
}

/* In a failover group the receive path counts messages in conn->tx_log, so this one has a log
 * too. */
static enum tk_status open_conn(struct tk_conn *conn, const struct tk_rail *rail)
{
    const struct tk_datagrams *all = tk_conns.datagrams;
    struct ibv_qp_init_attr attr = {.send_cq = tk_send_cq(rail->device, 0),
                                    .recv_cq = rail->device->recv_cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = (uint32_t)all->sends,
                                            .max_recv_wr = (uint32_t)all->receives,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    tk_lock_init(&conn->lock);
    conn->rail = (uint8_t)(rail - tk_verbs.rails);
    conn->lane = tk_verbs.lanes;
    tk_counter_set(&conn->space, all->sends);
    if (tk_verbs.failover_enabled && !(conn->tx_log = calloc(1, sizeof(*conn->tx_log))))
        return open_failed(rail, "memory", ENOMEM);
    conn->qp = ibv_create_qp(rail->device->pd, &attr);
    return conn->qp ? TK_OK : open_failed(rail, "create_qp", errno);
}

enum tk_status tk_datagrams_open(struct tk_peer_info *info)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct rail_datagrams *rd = &all->rails[i];
        if (open_memory(rd, &tk_verbs.rails[i]) != TK_OK ||
            open_conn(rd->conn, &tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
        if (tk_srq_in_use())
            tk_srq_join(rd->conn);
        tk_peer_info_datagram_qps(info)[i] = rd->conn->qp->qp_num;
    }
    return TK_OK;
}

enum tk_status tk_datagrams_prepare(void)
{
    tk_conns.datagrams = calloc(1, sizeof(struct tk_datagrams) +
                                       tk_verbs.rail_count * sizeof(tk_conns.datagrams->rails[0]));
    if (!tk_conns.datagrams) {
        tk_log_error("out of memory for datagrams");
        return TK_FAIL;
    }
    tk_conns.datagrams->receives = (int)tk_verbs_datagram_receives(tk_verbs.peers);
    tk_conns.datagrams->sends = (int)tk_settings.connect_snds;
    tk_conns.datagrams->chance = tk_peers.me;
    return TK_OK;
}

/* ---- receiving ---- */

/* Restores the mark: a packet may have overwritten everything, also the bytes before the
 * datagram. */
TK_FIRST_USE static void datagram_post(struct tk_buffer *buffer)
{
    struct ibv_recv_wr *bad;
    buffer->data[0] = (char)tk_datagram_mark;
    int error = ibv_post_recv(buffer->conn->qp, &buffer->wr, &bad);
    if (error)
        tk_panic("ibv_post_recv for a datagram failed with error %d", error);
}

static void fill_queue(struct rail_datagrams *rd)
{
    for (int i = 0; i < tk_conns.datagrams->receives; i++) {
        struct tk_buffer *buffer = &rd->buffers[i];
        char *at = rd->memory + (size_t)i * slot_size;
        buffer->conn = rd->conn;
        buffer->data = at + tk_datagram_front;
        buffer->sge =
            (struct ibv_sge){.addr = (uintptr_t)at, .length = slot_size, .lkey = rd->mr->lkey};
        buffer->wr =
            (struct ibv_recv_wr){.wr_id = (uintptr_t)buffer, .sg_list = &buffer->sge, .num_sge = 1};
        datagram_post(buffer);
    }
}

static int make_ready(struct rail_datagrams *rd, const struct tk_rail *rail)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)rail->pkey_index,
                               .port_num = rail->address.port,
                               .qkey = tk_conns.datagrams->key};
    const struct tk_route route = {.rail = rail, .type = IBV_QPT_UD};
    int error = ibv_modify_qp(rd->conn->qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    if (error == 0) {
        fill_queue(rd);
        error = tk_qp_rtr(rd->conn->qp, &route);
    }
    return error ? error : tk_qp_rts(rd->conn->qp, &route);
}

/* Keys with the highest bit are for privileged users (IBA 10.2.5). */
enum tk_status tk_datagrams_connect(void)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    memcpy(all->secret, tk_conns.secret, sizeof(all->secret));
    memcpy(&all->key, all->secret, sizeof(all->key));
    all->key = (all->key & INT32_MAX) | 1;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        int error = make_ready(&all->rails[i], &tk_verbs.rails[i]);
        if (error)
            return open_failed(&tk_verbs.rails[i], "modify_qp", error);
    }
    return TK_OK;
}

/* How many numbers of queue pairs and the like a datagram carries. */
static uint32_t numbers(void)
{
    return tk_verbs.conns_pp * (tk_xrc_in_use() ? tk_xrc_numbers : 1);
}

/* The size of this job's datagrams; the struct has space for more numbers than most jobs use. */
static size_t bytes_of_datagram(void)
{
    return offsetof(struct tk_datagram, qps) +
           numbers() * sizeof(((struct tk_datagram *)NULL)->qps[0]);
}

TK_FIRST_USE bool tk_is_datagram(const struct tk_buffer *buffer)
{
    return tk_is_datagram_conn(buffer->conn);
}

static bool is_sound(const struct tk_datagram *d, uint32_t size)
{
    return size >= tk_datagram_front + bytes_of_datagram() && d->version == tk_datagram_version &&
           d->magic == tk_datagram_magic && d->to == tk_peers.me && d->from < tk_peers.size &&
           d->what > TK_HANDSHAKE_SILENCE && d->what < tk_incarnation_messages &&
           d->conns == tk_verbs.conns_pp && d->credits >= 1 &&
           d->credits <= (uint32_t)tk_verbs.credits_pp && tk_is_verbs_peer(d->from) &&
           !memcmp(d->secret, tk_conns.datagrams->secret, sizeof(d->secret));
}

/* Takes no lock: the caller owns the buffer. */
TK_FIRST_USE bool tk_datagram_take(struct tk_buffer *buffer, uint32_t size,
                                   struct tk_datagram *datagram)
{
    memcpy(datagram, buffer->data, bytes_of_datagram());
    datagram_post(buffer);
    return is_sound(datagram, size);
}

/* ---- sending ---- */

static bool is_idle(void)
{
    const struct tk_datagrams *all = tk_conns.datagrams;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_conn_space(all->rails[i].conn) != all->sends)
            return false;
    return true;
}

static void drop_handles(void)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    while (all->handle_count > 0)
        ibv_destroy_ah(all->handles[--all->handle_count].ah);
}

static struct ibv_ah *find_handle(uint32_t to, uint32_t rail)
{
    const struct tk_datagrams *all = tk_conns.datagrams;
    for (unsigned i = 0; i < all->handle_count; i++)
        if (all->handles[i].to == to && all->handles[i].rail == rail)
            return all->handles[i].ah;
    return NULL;
}

/* Remembers how long the address is missing. */
TK_FIRST_USE static bool set_route(struct ibv_ah_attr *attr, uint32_t to, uint32_t number)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    const struct tk_rail *rail = &tk_verbs.rails[number];
    struct tk_path path;
    if (!tk_path_find(&path, &rail->address, tk_address_of(to, number), tk_peers.me < to))
        return false;
    if (tk_route_set(attr, rail, &path) == 0) {
        if (all->lost_since && all->lost_to == to && all->lost_rail == number)
            all->lost_since = 0;
        return true;
    }
    if (!all->lost_since) {
        all->lost_since = tk_now();
        all->lost_to = to;
        all->lost_rail = number;
    }
    return false;
}

TK_FIRST_USE bool tk_datagram_may_connect(uint32_t rank)
{
    struct ibv_ah_attr attr;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (!set_route(&attr, rank, i))
            return false;
    return true;
}

bool tk_datagram_address_is_lost(uint64_t now, double limit)
{
    const struct tk_datagrams *all = tk_conns.datagrams;
    char text[tk_path_text_size];
    struct ibv_ah_attr attr;
    if (!all || !all->lost_since || (double)(now - all->lost_since) < limit * 1e9 ||
        set_route(&attr, all->lost_to, all->lost_rail))
        return false;
    const struct tk_peer *peer = tk_peer(all->lost_to);
    const struct tk_port_address *mine = &tk_verbs.rails[all->lost_rail].address;
    struct tk_path path;
    tk_path_find(&path, mine, tk_address_of(peer->rank, all->lost_rail), tk_peers.me < peer->rank);
    tk_log_error("rank %u (%s, pid %d) can't be connected from %s: for %g s "
                 "(GASNET_IBV_CONNECT_TIMEOUT) the port's table has had no such GID: give its "
                 "interface the address again",
                 peer->rank, peer->host, peer->pid, tk_path_text(mine, &path, text), limit);
    return true;
}

TK_FIRST_USE static struct ibv_ah *make_handle(uint32_t to, uint32_t number)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    const struct tk_rail *rail = &tk_verbs.rails[number];
    struct ibv_ah_attr attr = {.port_num = rail->address.port};
    if (all->handle_count >= handles_max / 2 && is_idle())
        drop_handles();
    if (all->handle_count == handles_max || !set_route(&attr, to, number))
        return NULL;
    struct ibv_ah *handle = ibv_create_ah(rail->device->pd, &attr);
    if (handle)
        all->handles[all->handle_count++] = (struct handle){handle, to, number};
    return handle;
}

static struct slot *find_slot(struct rail_datagrams *rd)
{
    for (int i = 0; i < tk_conns.datagrams->sends; i++)
        if (tk_op_done(&rd->sends[i].op))
            return &rd->sends[i];
    return NULL;
}

TK_FIRST_USE static void fill_datagram(struct tk_datagram *d, uint32_t to,
                                       const struct tk_incarnation_word *word,
                                       const struct tk_conn *conns)
{
    memset(d, 0, bytes_of_datagram());
    d->mark = tk_datagram_mark;
    d->what = word->what;
    d->version = tk_datagram_version;
    d->magic = tk_datagram_magic;
    d->from = tk_peers.me;
    d->to = to;
    d->epoch = word->epoch;
    d->number = word->number;
    d->out = word->out;
    d->owed = word->owed;
    d->conns = tk_verbs.conns_pp;
    d->credits = (uint32_t)tk_srq_credits_base();
    memcpy(d->secret, tk_conns.datagrams->secret, sizeof(d->secret));
    if (conns && tk_xrc_in_use())
        tk_xrc_numbers_of(conns, d->qps);
    for (uint32_t k = 0; k < tk_verbs.conns_pp && !tk_xrc_in_use(); k++)
        d->qps[k] = conns ? tk_failover_group_number(&conns[k]) : 0;
}

TK_FIRST_USE static void datagram_post_send(struct tk_tx *tx, const struct slot *slot,
                                            struct ibv_ah *handle, uint32_t to_qp)
{
    const struct rail_datagrams *rd = &tk_conns.datagrams->rails[tx->conn->rail];
    struct ibv_sge sge = {.addr = (uintptr_t)slot->datagram,
                          .length = (uint32_t)bytes_of_datagram(),
                          .lkey = rd->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = (uintptr_t)tx,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = handle;
    wr.wr.ud.remote_qpn = to_qp;
    wr.wr.ud.remote_qkey = tk_conns.datagrams->key;
    tx->nbytes = sge.length;
    tx->opcode = IBV_WR_SEND;
    tx->covers = 0;
    if (ibv_post_send(tx->conn->qp, &wr, &bad))
        tk_tx_complete(tx); /* treated as lost */
}

/* Chooses at random: if one rail loses everything, strict alternation of repeats and answers would
 * keep some datagrams on that rail. */
static uint32_t choose_rail(struct tk_datagrams *all, const struct tk_conn *conns)
{
    all->chance = all->chance * 1664525 + 1013904223;
    uint32_t first = (all->chance >> 16) % tk_verbs.rail_count;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        uint32_t rail = (first + i) % tk_verbs.rail_count;
        if (tk_failover_group_reaches(conns, rail))
            return rail;
    }
    return first;
}

TK_FIRST_USE bool tk_datagram_send(uint32_t to, const struct tk_incarnation_word *word,
                                   const struct tk_conn *conns)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    uint32_t rail = choose_rail(all, conns);
    struct rail_datagrams *rd = &all->rails[rail];
    struct slot *slot = find_slot(rd);
    struct ibv_ah *handle = slot ? find_handle(to, rail) : NULL;
    if (slot && !handle)
        handle = make_handle(to, rail);
    struct tk_tx *tx = handle ? tk_tx_take(rd->conn, false) : NULL;
    if (!tx)
        return false;
    fill_datagram(slot->datagram, to, word, conns);
    tx->op = &slot->op;
    tk_counter_add(&slot->op.pending, 1);
    datagram_post_send(tx, slot, handle, tk_place_of(to, rail)->datagram_qp);
    return true;
}

bool tk_is_datagram_sent(const struct tk_tx *tx)
{
    return tk_is_datagram_conn(tx->conn);
}

/* ---- end ---- */

void tk_datagrams_close(void)
{
    struct tk_datagrams *all = tk_conns.datagrams;
    for (uint32_t i = 0; all && i < tk_verbs.rail_count; i++) {
        struct rail_datagrams *rd = &all->rails[i];
        if (rd->conn && rd->conn->qp)
            ibv_destroy_qp(rd->conn->qp);
        if (rd->conn)
            free(rd->conn->tx_log);
        if (rd->mr)
            ibv_dereg_mr(rd->mr);
        free(rd->conn);
        free(rd->buffers);
        free(rd->memory);
        free(rd->sends);
    }
    if (all)
        drop_handles();
    free(all);
    tk_conns.datagrams = NULL;
}
