/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the least recently used connection, where a rank may have fewer connections than peers
 * (GASNET_CONNECT_MAX). Sending a message counts nothing: instead a watched peer gets a table of
 * functions that notice its next use and restore the usual table. Call all functions with the lock
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

/* The ranks that have queue pairs: is there space for one more; their number; adding and removing
 * one. */
bool tk_evict_has_space(void);
uint32_t tk_evict_count(void);
void tk_evict_add(uint32_t rank);
void tk_evict_remove(uint32_t rank);

/* Starts to watch the peer, so that its next use is noticed. False: it was watched already. */
bool tk_evict_watch(struct tk_peer *peer);

/* The peer is used. No lock. */
void tk_evict_used(struct tk_peer *peer);

/* Has no thread used the peer since the watch began, long ago, and does none wait for it? */
bool tk_evict_is_idle(const struct tk_peer *peer);

/* The next peer whose connection may be closed, least recently used first; NULL: no more. is_open()
 * says whether a peer's connection is up. */
struct tk_peer *tk_evict_next(bool (*is_open)(const struct tk_peer *peer));

#endif
