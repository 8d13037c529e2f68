/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Implicit operations (NBI), which have no event of their own: each client thread counts its
 * operations in a set, by category. An access region replaces the thread's set by another one,
 * which becomes an event at the end of the region. Until then a set belongs to one thread; only its
 * counters are shared, with the transports. nbi_now.h has the thread's set. */
#ifndef TK_NBI_H
#define TK_NBI_H

#include <stdbool.h>

#include "gasnetex.h"
#include "op/op.h"

enum tk_nbi_kind {
    TK_NBI_PUT, /* ->sources: puts with GEX_EVENT_GROUP whose source is still being read */
    TK_NBI_GET,
    TK_NBI_RMW,
    TK_NBI_LC, /* active messages with GEX_EVENT_GROUP, which have local completion only */
    tk_nbi_kinds,
    TK_NBI_ROOT = tk_nbi_kinds /* all of them, as an event */
};

/* Stands in for the counter of an event; no operation has that many pieces. */
enum { tk_set_mark = INT32_MAX - 16 };

struct tk_nbi_set {
    struct tk_op ops[tk_nbi_kinds];
    tk_counter_t marks[tk_nbi_kinds + 1]; /* tk_set_mark + kind, or + TK_NBI_ROOT; never written */
    struct tk_nbi_set *next;              /* while free */
};

/* Whether all operations of these categories are complete. */
bool tk_nbi_done(const struct tk_nbi_set *set, gex_EC_t categories);

/* The client has learned that they are complete; for checks. */
void tk_nbi_synced(struct tk_nbi_set *set, gex_EC_t categories);

/* Access regions of the calling thread. */
bool tk_nbi_in_region(void);
void tk_nbi_begin_region(void);
struct tk_nbi_set *tk_nbi_end_region(void);

/* Frees the set of an access region. Any thread may call it. */
void tk_nbi_give(struct tk_nbi_set *set);

#endif
