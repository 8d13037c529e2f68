/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links that stand in for each other: the life of a link, and what the other files tell of it. */
#ifndef TK_VERBS_FAILOVER_H
#define TK_VERBS_FAILOVER_H

#include "transport/verbs/verbs_private.h"

/* Of a link. Closing and drained ones belong to a pair that is being moved. */
enum tk_fate {
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
    tk_notice_buffers_most = 2,
    /* Taken from the room of a link that is not live, and given to it as spare buffers: it neither
     * sends nor receives then, whoever tries. */
    tk_no_room_ever = 1 << 30
};

static inline int tk_notice_buffers(void)
{
    return tk_verbs.keeps ? tk_notice_buffers_most : 0;
}

/* Buffers that a primary link has at most. */
static inline int tk_receives_most(void)
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

struct tk_pair {
    struct tk_redo *redo; /* in the order in which it was posted once */
    tk_counter_t moving;  /* links that died and are not closed */
    int chores;           /* links of which there is something else to do */
    int heir;             /* number of the link that will be primary; -1: the primary one lives */
};

static inline struct tk_pair *tk_pair_of(const struct tk_link *link)
{
    return &tk_verbs.pairs[link->peer->rank];
}

static inline uint32_t tk_link_number(const struct tk_link *link)
{
    return (uint32_t)(link - tk_links_to(link->peer->rank));
}

/* Who goes on with moves and with what comes back; taken before a link's. */
extern TK_HIDDEN tk_lock_t tk_moves_lock;

enum tk_status tk_failover_open(void);
void tk_failover_close(void);

/* A work came back with an error. False: its link is not to be replaced, or can't be. */
bool tk_failover(struct tk_work *work, const struct ibv_wc *wc);

/* So did a receive buffer. */
bool tk_failover_flushed(struct tk_buffer *buffer, const struct ibv_wc *wc);

/* Its port is down: gives up its links to peers that have others. */
void tk_failover_rail(uint32_t rail);

/* Nobody is to hear of lost peers any more. */
bool tk_is_leaving(void);

/* Puts the queue pair into ERR unless it is there; says why if the link was live. */
void tk_link_give_up(struct tk_link *link, const char *why);

/* Work requests that it took and did not complete. */
int tk_link_unfinished(const struct tk_link *link);

/* Goes on with what is under way; runs no handler. */
void tk_failover_step(void);

/* failover/control.c: what one end of a link tells the other one of it, over another link. */

/* A notice came in this buffer, which is the caller's again on return. */
void tk_notice_came(const struct tk_buffer *buffer, uint32_t size);

/* The rest with the lock of moves. What is to be told and is final goes over `carrier`. */
void tk_notices_tell(uint32_t rank, struct tk_link *carrier);
void tk_notices_tell_again(struct tk_link *lost);

/* failover/port_events.c */
void tk_events_open(void);
void tk_events_look(void);

#endif
