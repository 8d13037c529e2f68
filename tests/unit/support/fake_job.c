/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_job.h. Owns copies of all messages until fake_job_close(). No lock. */
#include "config.h"

#include "fake_job.h"
#include "op/op_type.h"
#include "progress/progress.h"
#include "transport/transport.h"
#include "unit.h"

struct tk_peers tk_peers;
struct fake_job fake_job;

static void report_stall(void)
{
    fake_job.stalls_reported++;
}

static struct fake_sent *next_sent(struct tk_peer *to)
{
    assert_true(fake_job.count < fake_sent_max);
    struct fake_sent *sent = &fake_job.sent[fake_job.count++];
    *sent = (struct fake_sent){.to = to->rank};
    return sent;
}

/* A transport keeps its connections at the peer of the table: a copy of another endpoint's does not
 * see that they change. */
static void assert_own(const struct tk_peer *given)
{
    assert_ptr_equal(given, tk_peer(given->rank));
}

static enum tk_status send(struct tk_peer *to, struct tk_outgoing *m)
{
    assert_own(to);
    if (fake_job.busy_sends > 0) {
        fake_job.busy_sends--;
        return TK_BUSY;
    }
    struct fake_sent *sent = next_sent(to);
    sent->head = malloc(m->head_size + m->nbytes);
    sent->head_size = m->head_size;
    sent->nbytes = m->nbytes;
    sent->may_gather = m->source != NULL;
    memcpy(sent->head, m->head, m->head_size);
    if (m->nbytes)
        memcpy((char *)sent->head + m->head_size, m->payload, m->nbytes);
    sent->op = m->source;
    if (sent->op)
        tk_counter_add(&sent->op->pending, 1);
    return TK_OK;
}

static enum tk_status reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    assert_own(reservation->peer);
    if (fake_job.busy_rooms > 0) {
        fake_job.busy_rooms--;
        return TK_BUSY;
    }
    fake_job.credits_held++;
    fake_job.places_held += place;
    reservation->tx = place ? reservation : NULL;
    reservation->buffer = buffer ? aligned_alloc(64, (tk_am_buffer_size + 63) / 64 * 64) : NULL;
    return TK_OK;
}

static enum tk_status reserve_place(struct tk_am_reservation *reservation)
{
    assert_own(reservation->peer);
    if (fake_job.busy_rooms > 0) {
        fake_job.busy_rooms--;
        return TK_BUSY;
    }
    fake_job.places_held++;
    reservation->tx = reservation;
    return TK_OK;
}

static void release(struct tk_am_reservation *reservation, bool keep_credit)
{
    assert_own(reservation->peer);
    fake_job.credits_held -= !keep_credit;
    fake_job.places_held -= reservation->tx != NULL;
    reservation->tx = NULL;
    free(reservation->buffer);
    reservation->buffer = NULL;
}

static enum tk_status send_reserved(struct tk_am_reservation *reservation, struct tk_outgoing *m)
{
    enum tk_status status = send(reservation->peer, m);
    if (status == TK_OK)
        release(reservation, false);
    return status;
}

static void count(struct fake_sent *sent, const struct tk_rma *r)
{
    if (r->sources_only && r->copy_source && !fake_job.never_copies)
        return;
    sent->op = r->op;
    tk_counter_add(&r->op->pending, 1);
    if (!r->is_put || (r->copy_source && !fake_job.never_copies) || !r->sources)
        return;
    sent->sources = r->sources;
    tk_counter_add(r->sources, 1);
}

static enum tk_status rma(struct tk_peer *to, const struct tk_rma *r, struct tk_rma_state *state)
{
    assert_own(to);
    if (fake_job.busy_rmas > 0) {
        fake_job.busy_rmas--;
        return TK_BUSY;
    }
    size_t left = r->nbytes - state->done;
    struct fake_sent *sent = next_sent(to);
    sent->is_rma = true;
    sent->is_put = r->is_put;
    sent->copy_source = r->copy_source;
    sent->sources_only = r->sources_only;
    sent->remote = r->remote + state->done;
    sent->nbytes = fake_job.rma_piece && fake_job.rma_piece < left ? fake_job.rma_piece : left;
    if (r->is_put)
        memcpy((void *)sent->remote, r->local + state->done, sent->nbytes);
    else
        memcpy(r->local + state->done, (void *)sent->remote, sent->nbytes);
    count(sent, r);
    state->done += sent->nbytes;
    return state->done == r->nbytes ? TK_OK : TK_BUSY;
}

bool fake_job_deliver(void)
{
    while (fake_job.delivered < fake_job.count && fake_job.sent[fake_job.delivered].is_rma)
        fake_job.delivered++;
    if (fake_job.delivered == fake_job.count)
        return false;
    struct fake_sent *sent = &fake_job.sent[fake_job.delivered++];
    struct tk_arrival arrival = {.peer = tk_peer(sent->to),
                                 .head = sent->head,
                                 .payload = (char *)sent->head + sent->head_size,
                                 .nbytes = sent->nbytes};
    tk_deliver(&arrival);
    return true;
}

static bool reap(void)
{
    fake_job.reaps++;
    if (fake_job.hold_ops || fake_job.reaped == fake_job.count)
        return false;
    const struct fake_sent *sent = &fake_job.sent[fake_job.reaped++];
    if (!sent->op)
        return true;
    if (sent->sources)
        tk_counter_add(sent->sources, -1);
    tk_counter_add(&sent->op->pending, -1);
    return true;
}

static bool poll(void)
{
    fake_job.polls++;
    bool any = reap();
    fake_job.reaps--;
    return (!fake_job.hold && fake_job_deliver()) || any;
}

struct tk_transport fake_transport = {
    .name = "fake",
    .rma = {.put = tk_put_never, /* everything goes the general way */
            .get = tk_get_never,
            .post = rma},
    .am = {.send_short = tk_send_short_whole,
           .send_small = tk_send_small_short,
           .send = send,
           .reserve = reserve,
           .reserve_place = reserve_place,
           .send_reserved = send_reserved,
           .release = release,
           .packed_max = 60000},
    .poll = poll,
    .reap = reap,
    .reap_in_handler = reap,
    .reports = {.stall = report_stall}};

void fake_job_open(uint32_t size)
{
    memset(&fake_job, 0, sizeof(fake_job));
    tk_peers = (struct tk_peers){.size = size, .me = 0};
    tk_peers.at = aligned_alloc(TK_CACHE_LINE, size * sizeof(*tk_peers.at));
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r] = (struct tk_peer){
            .rank = r, .transport = &fake_transport, .host = "elsewhere", .pid = (int)(1000 + r)};
    tk_transports = (struct tk_transports){.at = {&fake_transport}, .count = 1};
    tk_progress_use(&fake_transport);
}

void fake_job_close(void)
{
    for (unsigned i = 0; i < fake_job.count; i++)
        free(fake_job.sent[i].head);
    free(tk_peers.at);
    fake_job.count = 0;
}

/* Messages of tests are between endpoints 0. Weak: some have segments. */
__attribute__((weak)) struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint)
{
    (void)rank;
    return (struct tk_bound){.endpoint = endpoint, .fd = -1};
}

__attribute__((weak)) struct tk_staging tk_staging;
