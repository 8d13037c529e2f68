/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that came while nobody could run handlers: in the wait of a handler for a connection to
 * be moved, where connections stand in for each other. They are accounted when they come, so that
 * the connection may be closed; only their handlers wait. */
#ifndef TK_VERBS_DEFERRED_H
#define TK_VERBS_DEFERRED_H

#include "base/bits.h"
#include "transport/verbs/verbs_private.h"

/* A message of this size, whose head was checked; the buffer stays. */
void tk_deferred_put(struct tk_buffer *buffer, uint32_t size);

/* The same of a buffer that its owner needs at once: the message is copied. */
void tk_deferred_put_copy(struct tk_conn *conn, const char *data, uint32_t size);

bool tk_deferred_hand_up_all(void);

/* Most polls find nothing there, and take no lock to see that: `first` is written with the lock,
 * and atomically. */
static inline bool tk_deferred_has_some(void)
{
    return __atomic_load_n(&tk_verbs.deferred.first, __ATOMIC_RELAXED) != NULL;
}

/* Before what came later. */
static inline bool tk_deferred_hand_up(void)
{
    return tk_deferred_has_some() && tk_deferred_hand_up_all();
}

#endif
