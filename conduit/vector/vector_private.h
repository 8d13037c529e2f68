/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of vector: a transfer that is being posted, and its paths. */
#ifndef TK_VECTOR_PRIVATE_H
#define TK_VECTOR_PRIVATE_H

#include "base/pool_type.h"
#include "kind_rma/kind_rma.h"
#include "op/op_type.h"
#include "transport/transport.h"
#include "vector/choose.h"
#include "vector/stream.h"
#include "vector/vector.h"

/* Notification of the target's client when a put is complete. */
struct tk_notice {
    uint8_t handler; /* 0: nothing */
    uint8_t nbytes;
    char bytes[tk_vector_notice_max];
};

/* Exists from its start until all of it is posted or, with a notice, until the notice is sent.
 * Belongs to the starting thread, then to the list that progress goes through. */
struct tk_vector {
    union {
        struct tk_pool_item item; /* while free */
        struct tk_vector *next;   /* while it waits for progress */
    };
    struct tk_peer *peer;
    struct tk_op *op;      /* the client's; counts this transfer once until it is given back */
    struct tk_op own;      /* counts pieces, if a notice follows them */
    struct tk_op *pieces;  /* &own or op */
    tk_counter_t *sources; /* as in struct tk_rma; counts this transfer while it is posted */
    enum tk_vector_path path;
    bool is_put, is_posted;
    struct tk_stream remote, local;
    struct tk_rma rma; /* the piece that is being posted, and what all have in common */
    struct tk_rma_state state;
    struct tk_notice notice;
    struct tk_vector_kinds kinds; /* by devices */
    unsigned list_max;
    struct { /* by lists: what was refused for lack of space */
        struct tk_local_piece pieces[tk_gather_max];
        unsigned count;
        size_t nbytes;
    } listed;
    uint8_t value; /* fill: the byte; rma.remote, rma.nbytes and state.done say where */
};

/* vector.c. The address offset at which this process maps the endpoint's segment, a neighbour's or
 * its own; tk_unmapped if it does not. */
uintptr_t tk_vector_offset(struct tk_peer *peer, uint32_t endpoint);
void tk_vector_fill(struct tk_peer *peer, uintptr_t remote, size_t nbytes, uint8_t value,
                    struct tk_op *op);

/* Each posts as much as there is space for, and returns whether that was all. */
bool tk_vector_by_pieces(struct tk_vector *v);
bool tk_vector_by_messages(struct tk_vector *v);
bool tk_vector_by_stages(struct tk_vector *v);
bool tk_vector_by_fill(struct tk_vector *v);
bool tk_vector_by_lists(struct tk_vector *v);
bool tk_vector_by_devices(struct tk_vector *v);

/* lists.c: as many pieces of this local side as one request takes; 0: none. */
unsigned tk_vector_list_max(struct tk_vector *v);

/* message.c */
void tk_vector_messages_open(void);
bool tk_vector_notify(struct tk_peer *peer, const struct tk_notice *notice);

/* serve.c: handlers of requests */
void tk_vector_serve_open(void);

/* stage.c. Whether there is staging memory, which the first call allocates; if not, the reason was
 * logged. */
void tk_vector_stages_open(void);
bool tk_vector_can_stage(void);

/* ---- what travels: arguments of a request ---- */

enum tk_vector_what { TK_VECTOR_PUT, TK_VECTOR_GET, TK_VECTOR_FILL, TK_VECTOR_NOTICE };

/* The remote stream: a rest of a run, then ranges in the form of its client's call. They lie in
 * front of the data in the payload: gex_Memvec_t, addresses or struct tk_level each. */
struct tk_vector_ask {
    uint32_t flight; /* to be returned */
    uint16_t what;   /* enum tk_vector_what */
    uint8_t form;    /* enum tk_stream_form */
    uint8_t value;   /* fill: the byte; notice: the handler */
    uint64_t nbytes; /* of data */
    uint64_t at, left;
    uint64_t next, chunk, chunks; /* as in struct tk_stream */
    uint32_t entries;             /* in the payload */
    uint32_t reserved;
};

enum {
    tk_vector_ask_args = sizeof(struct tk_vector_ask) / sizeof(int32_t),
    tk_vector_answer_args = 1 /* the flight */
};

_Static_assert((int)tk_vector_ask_args <= (int)tk_max_args, "a request's arguments");

/* Bytes of an entry. */
static inline size_t tk_vector_entry(enum tk_stream_form form)
{
    return form == TK_STREAM_VECTOR    ? sizeof(gex_Memvec_t)
           : form == TK_STREAM_INDEXED ? sizeof(void *)
                                       : sizeof(struct tk_level);
}

#endif
