/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the connection that has not been used for longest, where there may be fewer than peers
 * (GASNET_CONNECT_MAX). The path of a message counts nothing. Instead a peer that is being watched
 * gets a table of functions that notice its next use and restore the usual table. All with the lock
 * of demands, except tk_evict_used(). */
#ifndef TK_VERBS_QP_EVICT_H
#define TK_VERBS_QP_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct tk_peer;
struct tk_transport;

/* 0: connections are not bounded. */
enum tk_status tk_evict_open(uint32_t max);
void tk_evict_close(void);
bool tk_evict_is_bounded(void);

/* `watched`: the table of peers that are being watched. */
void tk_evict_use_tables(const struct tk_transport *connected, const struct tk_transport *watched);

/* Connections that have queue pairs. */
bool tk_evict_has_space(void);
uint32_t tk_evict_count(void);
void tk_evict_add(uint32_t rank);
void tk_evict_remove(uint32_t rank);

/* Starts to watch the peer; its next use shows. False: it was watched already. */
bool tk_evict_watch(struct tk_peer *peer);

/* The peer is used. No lock. */
void tk_evict_used(struct tk_peer *peer);

/* Unused since the watch began long ago, and no thread waits for it? */
bool tk_evict_is_idle(const struct tk_peer *peer);

/* The next peer whose connection may be closed, least recently used first. `is_open`: may it be one
 * that is up? NULL: no more. */
struct tk_peer *tk_evict_next(bool (*is_open)(const struct tk_peer *peer));

#endif
