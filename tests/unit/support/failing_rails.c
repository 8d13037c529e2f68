/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See failing_rails.h. Owns the streams. */
#include "config.h"

#include "failing_rails.h"

#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

unsigned lost_count;
bool failing_rails_by_cm;

const char *__attribute__((weak)) failing_rails_setting(void)
{
    return NULL;
}

void __attribute__((weak)) failing_rails_time_passes(void)
{
}

static void lost(uint32_t rank)
{
    assert_in_range(rank, 0, 1);
    lost_count++;
}

/* ---- messages: each stream from one rank to the other is numbered, and must come so ---- */

struct stream stream[ranks];

char pattern(int32_t serial, size_t i)
{
    return (char)((size_t)serial * 31 + i * 7);
}

/* As waiting ranks do occasionally: a broken queue pair flushes nothing from a shared queue. The
 * test decides when ports are checked. */
static void look_at_queue_pairs(void)
{
    uint64_t look_again[tk_conns_max];
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        look_again[i] = tk_verbs.rails[i].look_again;
        tk_verbs.rails[i].look_again = 0;
    }
    tk_events_look();
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        tk_verbs.rails[i].look_again = look_again[i];
}

/* A handler that waits runs no other handler. */
void one_polls(uint32_t rank)
{
    world_be(rank);
    if (stream[rank].in_handler)
        tk_verbs_transport()->reap();
    else
        tk_verbs_transport()->poll();
    if (failing_rails_by_cm) /* as waiting ranks do occasionally */
        tk_cm_look();
    if (tk_srq_in_use())
        look_at_queue_pairs();
}

enum tk_status send_numbered(uint32_t to, enum tk_message_kind kind, size_t nbytes)
{
    static char payload[tk_message_max];
    struct tk_short front = {.head = {.kind = (uint8_t)kind, .nargs = 1}};
    struct tk_outgoing m = {.head = &front.head, .payload = payload, .nbytes = nbytes};
    m.head_size = tk_short_size(1);
    front.head.category = nbytes > 0 ? TK_MEDIUM : TK_SHORT;
    front.args[0] = stream[to].sent;
    for (size_t i = 0; i < nbytes; i++)
        payload[i] = pattern(front.args[0], i);
    enum tk_status status;
    tk_peer(to)->transport = tk_verbs_transport();
    if (nbytes == 0)
        status = tk_logged_send_short(tk_peer(to), front.head, front.args, NULL);
    else if (front.args[0] % 2)
        status = tk_logged_send_medium(tk_peer(to), tk_head_of_medium(kind, 0, 1), front.args,
                                       payload, nbytes, NULL);
    else
        status = tk_verbs_send(tk_peer(to), &m);
    stream[to].sent += status == TK_OK;
    return status;
}

static void reply(struct tk_arrival *arrival, uint32_t me)
{
    uint32_t asker = arrival->peer->rank;
    stream[me].in_handler = true;
    while (send_numbered(asker, TK_REPLY, (size_t)stream[asker].sent % 3 * 100) == TK_BUSY) {
        fake_settle();
        one_polls(asker);
        one_polls(me);
    }
    stream[me].in_handler = false;
    arrival->replied = true;
}

/* The other rank's handler, which this one interrupts here, waits for nothing from this rank: in a
 * real job it would continue, and its rank would poll. */
static bool holds_up(uint32_t other)
{
    return stream[other].in_handler && tk_counter_read(&world_verbs(other)->pending_work) == 0;
}

static void deliver(struct tk_arrival *arrival)
{
    uint32_t me = tk_peers.me;
    const int32_t *args = (const int32_t *)(const void *)(arrival->head + 1);
    const char *payload = arrival->payload;
    bool is_request = arrival->head->kind == TK_REQUEST;
    int32_t serial = stream[me].came++;
    assert_false(stream[me].in_handler);
    assert_int_equal(args[0], serial);
    for (size_t i = 0; i < arrival->nbytes; i++)
        assert_int_equal(payload[i], pattern(serial, i));
    if (is_request && stream[me].replies && serial % 2 && !holds_up(1 - me))
        reply(arrival, me);
}

/* ---- the world ---- */

struct tk_conn *conn_to(uint32_t rank, uint32_t peer, uint32_t number)
{
    const struct tk_verbs *verbs = world_verbs(rank);
    return verbs->conns_of[peer] + number;
}

struct ibv_qp *qp_of(uint32_t rank, uint32_t number)
{
    return conn_to(rank, 1 - rank, number)->qp;
}

static void fill(void)
{
    for (int i = 0; i < segment_size / 2; i++)
        ((char *)world_segment(0))[i] = (char)(i * 7 + i / 251);
}

void open_failing_rails(unsigned devices, const char *ports, const char *more)
{
    fake_reset();
    fake.device_count = (int)devices;
    fake.attr.max_srq = 16;
    fake.attr.max_srq_wr = 4096;
    fake.attr.phys_port_cnt = devices == 1 ? 2 : 1;
    lost_count = 0;
    memset(stream, 0, sizeof(stream));
    tk_lost_peer = lost;
    tk_deliver = deliver;
    const char *setting = failing_rails_setting();
    failing_rails_by_cm = setting && strncmp(setting, "GASNET_IBV_CONNECT", 18) == 0;
    unit_settings(ports, "GASNET_PUT_STRIPE_SZ=16", "GASNET_GET_STRIPE_SZ=16",
                  setting ? setting : more, setting ? more : NULL, NULL);
    world_open(ranks, segment_size);
    assert_int_equal(tk_srq_in_use(), setting && strncmp(setting, "GASNET_USE_SRQ", 14) == 0);
    fill();
}

bool idle(void)
{
    for (uint32_t r = 0; r < ranks; r++)
        if (tk_counter_read(&world_verbs(r)->pending_work) > 0)
            return false;
    return true;
}

/* The messages logged until nothing is pending; a switch-over that stops half-way fails the test.
 */
const char *logged_until_idle(void)
{
    unit_listen();
    for (int i = 0, calm = 0; i < 1000 && lost_count == 0 && calm < 10; i++) {
        calm = idle() ? calm + 1 : 0;
        fake_settle();
        one_polls(1);
        one_polls(0);
    }
    const char *said = unit_heard();
    assert_true(lost_count > 0 || idle());
    return said;
}

/* Every buffer is in its queue, and the two ends agree on what was lent. */
static void assert_lent(const struct tk_conn *ours, const struct tk_conn *theirs)
{
    for (struct tk_device *d = &tk_verbs.device; d; d = d->next)
        assert_int_equal(fake_srq_receives(d->srq->queue) + d->srq->used, d->srq->buffers);
    const struct tk_borrower *b = &theirs->loan->borrower;
    assert_int_equal(ours->loan->account.granted, b->limit);
    assert_int_equal(theirs->credits + ours->credits_to_return, b->limit);
}

static void assert_buffers(const struct tk_conn *conn)
{
    assert_int_equal(tk_credit_buffers_posted(conn), fake_receives(conn->qp));
}

/* The connection that has the messages, for both; and what both know of it adds up. */
uint32_t assert_whole(void)
{
    struct tk_conn *conns[ranks];
    for (uint32_t r = 0; r < ranks; r++) {
        world_be(r);
        conns[r] = tk_primary(tk_peer(1 - r));
        assert_true(tk_conn_is_live(conns[r]));
        if (!tk_srq_in_use())
            assert_buffers(conns[r]);
        assert_true(conns[r]->rx_extra >= 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        world_be(r);
        if (tk_srq_in_use())
            assert_lent(conns[r], conns[1 - r]);
        assert_int_equal(conns[r]->credits + conns[1 - r]->credits_to_return, tk_verbs.credits_pp);
    }
    world_be(0);
    assert_int_equal(stream[0].came, stream[0].sent);
    assert_int_equal(stream[1].came, stream[1].sent);
    assert_int_equal(fake_sins(), 0);
    uint32_t number = (uint32_t)(conns[0] - conn_to(0, 1, 0));
    assert_ptr_equal(conns[1], conn_to(1, 0, number));
    return number;
}
