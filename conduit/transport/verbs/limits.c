/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See limits.h: the manual's rules. No state. */
#include "config.h"

#include <limits.h>

#include "base/bits.h"
#include "settings/settings.h"
#include "transport/transport.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"

/* Threads of a PAR client that may run handlers at the same time; for further threads each message
 * is copied. */
enum { spares_threaded = 8, spares_single = 1 };

/* A read of 64 KiB takes about as long on the wire as its round trip, and as its handler. So with
 * three in flight one is always on the wire. */
enum { landings_threaded = 8, landings_single = 4 };

static int total_or_all(int64_t setting, int64_t all)
{
    return (int)tk_min(setting > 0 && setting < all ? (size_t)setting : (size_t)all, INT_MAX);
}

/* We may hold back at most a third of a peer's credits, and of its total for all peers no more than
 * our share: the peer must be able to send to others while a handler of ours runs long. */
static int batch_slack(int pp, int total, uint32_t peers)
{
    enum { held_of = 3 };
    return (int)tk_min((size_t)(pp / held_of), (size_t)(total - 1) / peers);
}

/* A third of a peer's credits, and at least one: one ACK returns several, and a peer that sends
 * without a pause still has two thirds to use. */
int tk_verbs_slack_default(int pp)
{
    enum { held_of = 3 };
    return pp > held_of ? pp / held_of : 1;
}

/* The slack is the highest value that can't block a job: a peer must never hold all of our
 * credits. */
void tk_verbs_limits_find(struct tk_verbs_limits *limits, uint32_t peers, uint32_t conns)
{
    int64_t total = tk_settings.am_credits_total;
    int pp = (int)tk_settings.am_credits_pp, depth_pp = (int)tk_settings.networkdepth_pp;
    int64_t all = (int64_t)pp * peers;
    int credits = total < 0 ? (int)tk_min(256, (size_t)all) : total_or_all(total, all);
    int64_t wanted = tk_settings.am_credits_slack;
    size_t slack =
        tk_min(wanted < 0 ? (size_t)tk_verbs_slack_default(pp) : (size_t)wanted, (size_t)pp - 1);
    int depth = total_or_all(tk_settings.networkdepth_total, (int64_t)depth_pp * peers * conns);
    /* An immediate Long needs space for its payload and its head at the same time. */
    depth = (int)tk_max((size_t)depth, 2);
    *limits = (struct tk_verbs_limits){.credits_pp = pp,
                                       .credits_total = credits,
                                       .slack = (int)tk_min(slack, (size_t)(credits - 1) / peers),
                                       .batch_slack = batch_slack(pp, credits, peers),
                                       .depth_pp = depth_pp,
                                       .depth_total = depth,
                                       .bounces = total_or_all(tk_settings.bbuf_count, depth)};
}

/* With shared queues connections have fewer credits of their own, and a process fewer in all. */
static int slack_of(const struct tk_verbs_limits *limits, int base)
{
    int most = tk_settings.am_credits_slack < 0 ? tk_verbs_slack_default(base) : base - 1;
    return (int)tk_min((size_t)limits->slack, tk_min((size_t)most, (size_t)base - 1));
}

struct tk_verbs_credits tk_verbs_credits_find(const struct tk_verbs_limits *limits,
                                              const struct tk_loan_plan *plan, uint32_t peers)
{
    int base = plan ? plan->base : limits->credits_pp;
    int total = plan ? plan->replies : limits->credits_total;
    return (struct tk_verbs_credits){
        .base = base,
        .total = total,
        .slack = (int)tk_min((size_t)slack_of(limits, base), (size_t)(total - 1) / peers),
        .batch_slack = plan ? 0 : limits->batch_slack,
        .is_total_bound = plan || total < (int64_t)limits->credits_pp * peers};
}

bool tk_verbs_fails_over(uint32_t conns)
{
    return conns > 1 && tk_settings.ibv_failover;
}

uint32_t tk_verbs_peers_at_once(uint32_t peers, uint32_t conns, bool is_static)
{
    uint32_t most = (uint32_t)tk_settings.connect_max / conns;
    return is_static || most == 0 || most > peers ? peers : most;
}

/* Start, barriers and exit connect a rank of a large job to three others (topology/leaders.c), and
 * a rank that has only these seldom needs a fourth. If queue pairs are bounded, none is made
 * without a peer. With several per peer none is made ahead either, because the peer's rank decides
 * which one carries messages. */
bool tk_verbs_makes_ahead(uint32_t peers, uint32_t connected, uint32_t conns)
{
    enum { usual = 3 };
    return conns == 1 && tk_settings.connect_max == 0 && connected < peers && connected != usual;
}

unsigned tk_verbs_datagram_receives(uint32_t peers)
{
    unsigned log = 0;
    if (tk_settings.connect_rcvs > 0)
        return (unsigned)tk_settings.connect_rcvs;
    while (log < 31 && (UINT32_C(1) << log) < peers)
        log++;
    return (unsigned)tk_max(6, 4 + 2 * log);
}

unsigned tk_verbs_spares(bool is_threaded)
{
    if (tk_settings.rbuf_spares > 0)
        return (unsigned)tk_settings.rbuf_spares;
    return is_threaded ? spares_threaded : spares_single;
}

size_t tk_verbs_shared_buffer(bool fails_over)
{
    enum { least = 1024 /* above the inline limit and the transport's own messages */ };
    size_t payload = tk_max((size_t)tk_settings.rbuf_size, least);
    size_t whole = tk_align_up(payload + tk_message_head_max, TK_CACHE_LINE);
    return tk_settings.rbuf_size == 0 || fails_over || whole > tk_message_max ? tk_message_max
                                                                              : whole;
}

unsigned tk_verbs_landings(bool is_threaded)
{
    if (tk_settings.rbuf_large > 0)
        return (unsigned)tk_settings.rbuf_large;
    return is_threaded ? landings_threaded : landings_single;
}

/* Buffers for requests and exit notices of all peers are always posted; as many for replies as
 * credits allow. */
unsigned tk_verbs_receive_buffers(const struct tk_verbs_limits *limits,
                                  const struct tk_verbs_receivers *receivers)
{
    unsigned peers = receivers->primaries, each = (unsigned)limits->credits_pp;
    unsigned notices = receivers->notices * receivers->conns;
    unsigned replies = (unsigned)tk_min((size_t)limits->credits_total, (size_t)each * peers);
    unsigned kept = peers; /* small messages leave one more posted */
    if (peers == 0 && notices == 0)
        return 0;
    return (each + 1) * peers + kept + replies + notices + tk_verbs_spares(receivers->is_threaded);
}

unsigned tk_verbs_pool_growth(unsigned have, unsigned wanted)
{
    return wanted > have ? wanted - have : 0;
}

/* In steps for several peers: a rank connects a few at its start, and an area of memory for each,
 * with a registration, cost a twentieth of it. */
unsigned tk_verbs_shared_pool(unsigned wanted, size_t size)
{
    const unsigned step = (unsigned)tk_max(((size_t)256 << 10) / size, 1);
    return (wanted + step - 1) / step * step;
}

/* -1: shared if connections with queues of their own would need more buffers. */
static bool is_srq_wanted(const struct tk_loan_input *input, uint32_t ranks)
{
    int64_t from = tk_settings.use_srq;
    if (from >= 0)
        return from > 0 && from <= ranks;
    return tk_settings.rbuf_count > 0 && tk_settings.rbuf_count < tk_loan_buffers_max(input);
}

/* The default is not a choice of the user: if it is too small, buffers are added for the
 * connections that it does not cover. */
bool tk_verbs_srq_wish(struct tk_loan_input *input, uint32_t ranks)
{
    if (!is_srq_wanted(input, ranks))
        return false;
    input->buffers = (int)tk_settings.rbuf_count;
    if (tk_settings.rbuf_count == 0)
        input->buffers = tk_loan_buffers_max(input);
    else if (tk_settings.use_srq < 0)
        input->conns = tk_loan_conns_fit(input);
    input->buffers = (int)tk_max((size_t)input->buffers, (size_t)tk_loan_buffers_min(input));
    return true;
}

static bool fits(struct tk_loan_input *input, int conns, int most, struct tk_loan_plan *plan)
{
    int room = most - input->bounded;
    if (room < input->buffers)
        input->buffers = room > tk_loan_buffers_min(input) ? room : tk_loan_buffers_min(input);
    *plan = tk_loan_plan(input);
    return tk_loan_stock(plan, conns).buffers <= most;
}

/* Where there is no room for bounded messages they take credits. */
bool tk_verbs_srq_fits(struct tk_loan_input *input, int conns, int most, struct tk_loan_plan *plan)
{
    const int wanted = input->buffers;
    if (fits(input, conns, most, plan))
        return true;
    input->bounded = 0;
    input->buffers = wanted;
    return fits(input, conns, most, plan);
}

/* A queue pair that connections to several ranks share can't be closed to make space, and none of
 * these ranks may end before the others: late packets for it would break the queue pair. */
bool tk_verbs_xrc_wish(bool is_static)
{
    return tk_settings.use_xrc != 0 && !is_static && tk_settings.connect_max == 0 &&
           tk_settings.catch_exit;
}

bool tk_verbs_static_asks(uint32_t conns)
{
    return tk_settings.use_xrc > 0 && tk_settings.use_srq != 0 && !tk_verbs_fails_over(conns) &&
           tk_verbs_xrc_wish(false);
}
