/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of transport/verbs share. A device in use has the objects that serve all its
 * ports; a rail is one port in use; a connection is one RC queue pair to one peer over a rail. Each
 * pair of ranks has the same number of connections, one of which is primary: it carries everything
 * small, in order. The others carry pieces of large transfers, and the notices by which another one
 * becomes primary when a connection dies (failover/failover.c).
 *
 * Locks: a connection's lock guards its credits, its receive queue and the order of its sends. The
 * lock of a pool or of a lane may be taken under it. The locks of the completion queues are only
 * tried, and are released before a completion is handled. */
#ifndef TK_VERBS_PRIVATE_H
#define TK_VERBS_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "bootstrap/host_table.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/library.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/device_private.h"
#include "transport/verbs/verbs_state.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/qp_state.h"
#include "transport/verbs/verbs.h"

enum {
    tk_inline_max = 512, /* inline sends are gathered on the stack; no device gains from more */
    /* Stands for a time that was not read yet: a client that sends as fast as credits come back is
     * refused at almost each message, and reading the clock takes 20 to 40 ns. */
    tk_starved_unseen = 1
};

struct tk_conn;
struct tk_pinned;
struct tk_tx_entry;
struct tk_rank_pair;
struct tk_rail;
struct tk_cm;
struct tk_demand;
struct tk_datagrams;
struct tk_loan;
struct tk_rndv_state;
struct tk_srq;
struct tk_xrc;

static inline unsigned tk_lane_count(void)
{
    return TK_THREADED ? tk_verbs.lane_count : 1;
}

static inline struct tk_lane *tk_lane_of(const struct tk_conn *conn)
{
    return TK_THREADED ? conn->lane : tk_verbs.lanes;
}

static inline struct tk_sends *tk_sends_of(const struct tk_device *device, struct tk_lane *lane)
{
    return device->sends ? &device->sends[lane - tk_verbs.lanes] : &lane->sends;
}

/* By the number of a lane. */
static inline struct ibv_cq *tk_send_cq(const struct tk_device *device, unsigned lane)
{
    return tk_sends_of(device, &tk_verbs.lanes[lane])->cq;
}

/* Of this thread: the lane from which it last took a work request; and the number of polls since
 * that changed, which tells when the others are due: one addition wraps to 0 every eighth time. */
enum { tk_lane_poll_step = 256 / 8, tk_lanes_due_next = 256 - tk_lane_poll_step };
struct tk_lane_place {
    struct tk_lane *lane;
    uint8_t polls; /* times the step */
};
extern TK_HIDDEN TK_PER_THREAD_NEAR struct tk_lane_place tk_lane_mine;

/* data/credit.c: all with the connection's lock held */
void tk_recv_refused(struct tk_conn *conn, struct tk_buffer *buffer, int error);
enum tk_status tk_credit_post_buffer(struct tk_conn *conn);

/* data/send.c */
enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *message);
enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy);
enum tk_status tk_verbs_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy);
/* For Mediums whose whole payload is copied. */
enum tk_status tk_verbs_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                     const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_short(struct tk_peer *peer, struct tk_message_head head,
                                    const int32_t *args, tk_short_busy *busy);
enum tk_status tk_logged_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                    tk_small_busy *busy);
enum tk_status tk_message_post(struct tk_conn *conn, struct tk_outgoing *message);

void tk_message_post_tx(struct tk_conn *conn, struct tk_tx *tx, struct tk_outgoing *message);

/* Posts the message in unsignaled_data, whose slot is taken, and logs it. */
void tk_unsignaled_post_logged(struct tk_conn *conn, size_t size);

/* data/am_reserve.c */
enum tk_status tk_verbs_reserve(struct tk_am_reservation *reservation, bool place, bool buffer);
enum tk_status tk_verbs_reserve_place(struct tk_am_reservation *reservation);
enum tk_status tk_verbs_send_reserved(struct tk_am_reservation *reservation,
                                      struct tk_outgoing *message);
void tk_verbs_release(struct tk_am_reservation *reservation, bool keep_credit);
void tk_verbs_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket);

/* data/gather.c */
unsigned tk_verbs_gather_max(const struct tk_region *home, const void *at, size_t nbytes);
enum tk_status tk_verbs_gather(struct tk_peer *peer, const struct tk_gather *gather);

/* data/atomic.c */
void tk_atomics_allow(void); /* once the rails are chosen */
void tk_atomics_agree(void); /* with the peer infos of all ranks */
enum tk_atomic_scope tk_verbs_atomic_scope(void);
enum tk_status tk_verbs_atomic(struct tk_peer *peer, struct tk_op *op,
                               const struct tk_device_atomic *atomic);
enum tk_status tk_verbs_atomic_open(struct tk_peer *peer, struct tk_atomic_end *ours);
enum tk_status tk_verbs_atomic_connect(struct tk_peer *peer, const struct tk_atomic_end *theirs);
void tk_verbs_atomic_ready(struct tk_peer *peer);

/* mcast/link.c */
extern TK_HIDDEN const struct tk_mcast_device tk_verbs_multicast;

/* data/poll.c */
bool tk_verbs_poll(void); /* of one device */
bool tk_verbs_reap(void);
bool tk_devices_poll(void); /* of all, if there are several */
bool tk_shared_poll(void);  /* data/poll_shared.c: of all, with shared receive queues */
bool tk_devices_reap(void);
bool tk_lanes_reap_others(void);  /* of lanes that are not this thread's */
void tk_lanes_reap(void);         /* of all lanes, busy or not */
bool tk_shared_logged_poll(void); /* shared queues in failover groups */
bool tk_shared_logged_reap(void);
bool tk_logged_poll(void); /* in failover groups */
bool tk_logged_reap(void);

/* By role (enum tk_device_role): queues that this thread polls even while another thread does.
 */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_queues_insisted;
int tk_cq_take_insisting(struct ibv_cq *cq, unsigned role, struct ibv_wc *wc, int max);

/* data/events.c */
struct tk_device_events;
extern TK_HIDDEN const struct tk_device_events tk_verbs_events;
void tk_channels_open(struct tk_device *device); /* before its queues; if a thread will sleep */
void tk_channels_close(struct tk_device *device);
struct tk_transport;
void tk_channels_serve(const struct tk_transport *transport); /* before a thread sleeps on them */

/* data/error.c */
void tk_post_failed(struct tk_tx *tx, int error);
void tk_tx_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_datagram_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_recv_failed(struct tk_conn *conn, const struct ibv_wc *wc);
void tk_buffers_exhausted(struct tk_conn *conn);
void tk_conns_exhausted(const struct tk_peer *peer); /* no connection reaches it any more */
_Noreturn void tk_wire_error(struct tk_conn *conn, const char *what);
void tk_explain_registration(const struct tk_device *device, const char *what, size_t size,
                             int error);
void tk_warn_registration(const struct tk_device *device, size_t size,
                          int error); /* for a transfer */

#endif
