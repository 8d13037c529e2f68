/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The struct of a work request in flight, which connections embed; tx.h has the functions. */
#ifndef TK_VERBS_TX_TYPE_H
#define TK_VERBS_TX_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/platform.h"
#include "base/pool_type.h"

struct tk_buffer;
struct tk_conn;
struct tk_op;
struct tk_pinned;

/* How the completion of a work request is handled. Kinds other than the first always have `op` and
 * use only that; the last also uses `held`. */
enum tk_tx_kind {
    TK_TX_GENERAL,
    TK_TX_PLAIN, /* only decrements its operation */
    TK_TX_HELD   /* the same, and releases local memory registered on the fly */
};

/* A work request in flight (tx descriptor): one cache line, of one lane. */
struct tk_tx {
    struct tk_pool_item item;
    struct tk_conn *conn;
    uint32_t nbytes;
    int covers;               /* earlier unsignaled messages that its completion covers */
    struct tk_op *op;         /* NULL: no thread waits for it */
    struct tk_buffer *bounce; /* given back on completion */
    union {
        void *get_to;           /* get through the bounce buffer: destination of the data */
        struct tk_pinned *held; /* local memory registered on the fly; released on completion */
    };
    tk_counter_t *sources; /* counts the transfer while its source is in use; may be NULL */
    uint8_t opcode;        /* enum ibv_wr_opcode, for messages; stored at once with: */
    uint8_t kind;          /* enum tk_tx_kind */
    bool is_held;          /* which member of the union; false also if neither */
    uint8_t more_bounces;  /* of unsignaled messages, linked behind `bounce` */
};
_Static_assert(sizeof(struct tk_tx) == TK_CACHE_LINE,
               "those of the lanes, which begin at a line, have one each");

static inline size_t tk_txs_bytes(size_t count)
{
    return count * sizeof(struct tk_tx);
}

#endif
