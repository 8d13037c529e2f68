/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of the connections has not been used for longest, where there may be fewer than peers
 * (GASNET_CONNECT_MAX). Nothing is counted on the way of a message: a peer whose connection is
 * looked at gets a table of functions that find out that it is used again, and put the other table
 * back. All with the lock of demands, except for tk_evict_used(). */
#ifndef TK_VERBS_QP_EVICT_H
#define TK_VERBS_QP_EVICT_H

#include "transport/verbs/verbs_private.h"

/* 0: connections are not bounded. */
enum tk_status tk_evict_open(uint32_t max);
void tk_evict_close(void);
bool tk_evict_is_bounded(void);

/* From now on: `resting` is the table of those that rest. */
void tk_evict_use_tables(const struct tk_transport *connected, const struct tk_transport *watched);

/* Connections that have queue pairs. */
bool tk_evict_has_space(void);
uint32_t tk_evict_count(void);
void tk_evict_add(uint32_t rank);
void tk_evict_remove(uint32_t rank);

/* Begins to rest; the next use shows. False: it did already. */
bool tk_evict_watch(struct tk_peer *peer);

/* It is used. No lock. */
void tk_evict_used(struct tk_peer *peer);

/* Did it rest for long, and is it not waited for? */
bool tk_evict_is_idle(const struct tk_peer *peer);

/* Peers whose connections may be closed, those that were not used for longest first. `is_open`: may
 * it be one that is up? NULL: there is none (any more). */
struct tk_peer *tk_evict_next(bool (*is_open)(const struct tk_peer *peer));

#endif
