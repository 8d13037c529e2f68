/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links that stand in for each other: the life of a link, and what the other files tell of it. */
#ifndef TK_VERBS_FAILOVER_H
#define TK_VERBS_FAILOVER_H

#include "transport/verbs/verbs_private.h"

/* Of a link. Closing and drained ones belong to a pair that is being moved. */
enum tk_fate {
    TK_LIVE,
    TK_CLOSING, /* its queue pair is in ERR, and gives back what it had */
    TK_DRAINED, /* that is done: what has come over it is known, and told to the other end */
    TK_SETTLED, /* the other end has told that too: what was lost waits to be posted again */
    TK_CLOSED   /* that is posted */
};

enum {
    /* One for what a link's end tells of another link, one for what it answers. Where many links
     * die at once more may be under way: the device tries again then, without limit. */
    tk_notice_buffers_most = 2
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

/* What it may have lost was posted again over the primary link. */
static inline bool tk_link_is_closed(const struct tk_link *link)
{
    return tk_counter_read(&link->fate) == TK_CLOSED;
}

enum tk_status tk_failover_open(void);
void tk_failover_close(void);

/* A work came back with an error. False: its link is not to be replaced, or can't be. */
bool tk_failover(struct tk_work *work, const struct ibv_wc *wc);

/* So did a receive buffer. */
bool tk_failover_flushed(struct tk_buffer *buffer, const struct ibv_wc *wc);

/* A notice came in this buffer, which is the caller's again on return. */
void tk_notice_came(const struct tk_buffer *buffer, uint32_t size);

/* Its port is down: gives up its links to peers that have others. */
void tk_failover_rail(uint32_t rail);

/* verbs_events.c */
void tk_events_open(void);
void tk_events_look(void);

/* Goes on with what is under way; runs no handler. */
void tk_failover_step(void);

#endif
