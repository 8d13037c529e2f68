/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a connection that another one may stand in for, and of its pair of ranks: what the
 * other files of failover/ and those of data/ ask before they act. Calls none of them. */
#ifndef TK_VERBS_CONNECTION_STATE_H
#define TK_VERBS_CONNECTION_STATE_H

#include "transport/verbs/verbs_private.h"

/* Of a link. Closing and drained ones belong to a pair that is being moved. */
enum tk_connection_state {
    TK_LIVE,
    TK_OPENING, /* its queue pair is open again, the other end is not known to be: nothing is sent
                 */
    TK_CLOSING, /* its queue pair is in ERR, and gives back what it had */
    TK_DRAINED, /* that is done: what has come over it is known, and told to the other end */
    TK_SETTLED, /* the other end has told that too: what was lost waits to be posted again */
    TK_CLOSED   /* that is posted */
};

enum {
    /* One for what a link's end tells of another link, one for what it answers. Where many links
     * die at once more may be under way: the device tries again then, without limit. */
    tk_notice_buffers_max = 2,
    /* Taken from the room of a link that is not live, and given to it as spare buffers: it neither
     * sends nor receives then, whoever tries. */
    tk_no_room_ever = 1 << 30
};

static inline int tk_notice_buffers(void)
{
    return tk_verbs.keeps ? tk_notice_buffers_max : 0;
}

/* Buffers that a primary link has at most. */
static inline int tk_receives_max(void)
{
    return 2 * tk_verbs.credits_pp + 1 + tk_notice_buffers();
}

static inline bool tk_link_is_live(const struct tk_link *link)
{
    return tk_counter_read(&link->fate) == TK_LIVE;
}

/* Live, or as good as that for who has no other. */
static inline bool tk_link_is_open(const struct tk_link *link)
{
    return tk_counter_read(&link->fate) <= TK_OPENING;
}

/* What it may have lost was posted again over the primary link. */
static inline bool tk_link_is_closed(const struct tk_link *link)
{
    int fate = tk_counter_read(&link->fate);
    return fate == TK_CLOSED || fate == TK_OPENING;
}

/* What is to be posted again. */
struct tk_redo;

struct tk_rank_pair {
    struct tk_redo *redo; /* in the order in which it was posted once */
    tk_counter_t moving;  /* links that died and are not closed */
    int chores;           /* links of which there is something else to do */
    int heir;             /* number of the link that will be primary; -1: the primary one lives */
};

static inline struct tk_rank_pair *tk_pair_of(const struct tk_link *link)
{
    return &tk_verbs.pairs[link->peer->rank];
}

static inline uint32_t tk_link_number(const struct tk_link *link)
{
    return (uint32_t)(link - tk_links_to(link->peer->rank));
}

/* Who goes on with moves and with what comes back; taken before a link's. */
extern TK_HIDDEN tk_lock_t tk_moves_lock;

/* Nobody is to hear of lost peers any more. */
bool tk_is_leaving(void);

/* Work requests that it took and did not complete. */
int tk_link_unfinished(const struct tk_link *link);

/* The first error, or what was flushed behind it: threads may see the one before the other. */
static inline bool tk_is_death(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR;
}

/* Names the link in quiet messages of this life; start-up, or with the link's lock. */
void tk_life_name(struct tk_link *link);

/* Does the work only name its link in errors of quiet messages; of a life that is over? No lock. */
bool tk_life_names(const struct tk_work *work);
bool tk_life_is_over(const struct tk_work *work);

/* Counts the link among those of which there is something to do, and out again; with the lock of
 * moves. */
void tk_chore_make(struct tk_link *link);
void tk_chore_end(struct tk_link *link);

/* There is something to tell of it; with the lock of moves. */
void tk_return_tell(struct tk_link *link);

#endif
