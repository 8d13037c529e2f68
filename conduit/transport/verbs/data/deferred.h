/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that came while no handler could run: a handler waits for a connection to be moved (in a
 * failover group), and polls meanwhile. They are counted on arrival, so that the connection may be
 * closed; only their handlers run later. */
#ifndef TK_VERBS_DEFERRED_H
#define TK_VERBS_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/verbs_state.h"

struct tk_buffer;
struct tk_conn;

/* Defers a message of this size, whose head was checked; keeps the buffer. */
void tk_deferred_put(struct tk_buffer *buffer, uint32_t size);

/* The same for a buffer that its owner needs at once: copies the message. */
void tk_deferred_put_copy(struct tk_conn *conn, const char *data, uint32_t size);

bool tk_deferred_hand_up_all(void);

/* Most polls find it empty, without a lock: `first` is written with the lock, and atomically. */
static inline bool tk_deferred_has_some(void)
{
    return __atomic_load_n(&tk_verbs.deferred.first, __ATOMIC_RELAXED) != NULL;
}

/* Runs handlers of deferred messages before those of later ones. */
static inline bool tk_deferred_hand_up(void)
{
    return tk_deferred_has_some() && tk_deferred_hand_up_all();
}

#endif
