/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a caller asks a transport to transfer: a put or a get of one range of local memory, or of
 * several. No state. */
#ifndef TK_RMA_REQUEST_H
#define TK_RMA_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

struct tk_op;
struct tk_region;

/* One put or get: what the caller requests. The caller fills it in, leaves unused fields 0, and
 * does not change it until rma.post() has returned TK_OK or nothing is posted. A transport only
 * reads it. */
struct tk_rma {
    uintptr_t remote;
    char *local;
    size_t nbytes;
    size_t whole;          /* bytes of the whole transfer, if this is a part of one; else 0 */
    struct tk_op *op;      /* op->pending counts the pieces in flight */
    tk_counter_t *sources; /* put: pieces whose source is in use; may be NULL */
    bool is_put;
    bool copy_source;  /* put: the caller waits for the source: copying it may be faster */
    bool is_lent;      /* put: the same, but registered memory is sent in place (progress/lend.h) */
    bool is_payload;   /* the payload of a message: counted as such */
    bool immediate;    /* post as many pieces as an idle queue holds, or nothing */
    bool is_blocking;  /* the caller blocks until all pieces complete: optimise for latency */
    bool sources_only; /* op->pending counts only the pieces whose source is still being read */
    bool is_pair; /* an endpoint other than 0 takes part: the five members below name the memory */
    uint32_t endpoint; /* of the peer */
    bool is_on_device; /* local memory, in `home`, is a device's, which no CPU may touch */
    bool wants_flush;  /* put: a read follows on each connection that it used */
    const uint32_t *remote_keys;  /* by rail */
    const struct tk_region *home; /* local memory that needs no registration; may be NULL */
};

/* Devices such as mlx5 may deliver the data of a small RDMA read in the completion, from where the
 * provider's poll function copies it by the CPU. The largest completion holds 64 bytes. Gets to a
 * device's memory are larger, as are their pieces. */
enum { tk_rma_scattered_max = 64 };

/* The progress of a transport with a tk_rma. The caller zeroes it before the first call of
 * rma.post() and passes the same struct to each further one; only the transport changes it. The
 * caller may read `done`; the other fields have no meaning outside the transport. */
struct tk_rma_state {
    size_t done;       /* bytes posted; op->pending counts those still in flight */
    uint64_t unfenced; /* a bit for each connection whose writes still need a read behind them */
    int32_t returns;   /* connections that had been reopened when `unfenced` was still 0 */
    bool may_hold;     /* the local memory was found fit for registration on the fly */
};

/* A put or a get between one range of remote memory and several of local memory. */
struct tk_local_piece {
    void *at;
    size_t nbytes;
};

enum { tk_gather_max = 16 };

struct tk_gather {
    uintptr_t remote;
    const uint32_t *remote_keys;
    const struct tk_region *home; /* as in struct tk_rma */
    const struct tk_local_piece *pieces;
    unsigned count;
    struct tk_op *op;
    tk_counter_t *sources;
    bool is_put;
};

#endif
