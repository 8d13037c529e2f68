/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Vector, indexed and strided puts and gets. Any memory, any shape; thread-safe in PAR. What can't
 * be posted at once goes on in any poll. */
#ifndef TK_VECTOR_H
#define TK_VECTOR_H

#include "gasnetex.h"
#include "peer/peer.h"
#include "vector/stream.h"

struct tk_kind_memory;

/* Memory of a device at either side, as in struct tk_kind_transfer. */
struct tk_vector_kinds {
    const struct tk_kind_memory *local;
    const struct tk_bound_kind *remote;
};

/* One transfer. The caller fills in all but the streams of a box; the functions below use it up. */
struct tk_vector_call {
    struct tk_peer *peer;
    bool is_put;
    bool wants_leaf;   /* put: local completion is asked for on its own */
    bool is_pair;      /* not between endpoints 0: the three below, as in struct tk_rma */
    uint32_t endpoint; /* the peer's */
    const uint32_t *remote_keys;
    const struct tk_region *home;
    struct tk_vector_kinds kinds;
    bool has_device; /* `kinds` says at which side */
    bool is_empty;   /* an armed put of no bytes: neither `box` nor streams are filled in */
    bool is_box;     /* strided: `box`; else the two streams */
    struct tk_box box;
    struct tk_stream remote, local;
};

/* Before anything can arrive. */
void tk_vector_open(void);

void tk_vector_blocking(struct tk_vector_call *call);
gex_Event_t tk_vector_start(struct tk_vector_call *call);

/* Counted among the calling thread's implicit operations. */
void tk_vector_implicit(struct tk_vector_call *call);

/* After the next put of the calling thread is complete, `handler` of the client runs at its target
 * with a copy of these bytes; 0: no more. The next put may be empty: callers start it if a handler
 * is armed. */
enum { tk_vector_notice_max = 127 };
void tk_vector_arm(uint8_t handler, const void *payload, size_t nbytes);
bool tk_vector_is_armed(void);

#endif
