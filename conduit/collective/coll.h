/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives on any team: broadcast, reductions, barriers, and those of the GASNet-1 interface.
 * Any number may be in progress on one team and on several, and complete in any order; polls
 * advance them. All members of a team must start theirs in the same order. Thread-safe in PAR. */
#ifndef TK_COLL_H
#define TK_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "gasnet_coll.h"

struct tk_op;

enum tk_coll_kind {
    TK_COLL_BARRIER,
    TK_COLL_BROADCAST,
    TK_COLL_REDUCE,
    TK_COLL_REDUCE_ALL,
    TK_COLL_SCATTER,
    TK_COLL_GATHER,
    TK_COLL_GATHER_ALL,
    TK_COLL_EXCHANGE,
    tk_coll_kinds
};

/* The function that combines two operands: the client's, or one of tk_coll_kernel(). */
struct tk_coll_fold {
    gex_Coll_ReduceFn_t fn;
    const void *cdata;
    size_t element; /* bytes of one */
};

struct tk_coll_call {
    gex_TM_t tm;
    enum tk_coll_kind kind;
    gex_Rank_t root;
    void *dst;
    const void *src;
    size_t nbytes; /* of the payload; scatter, gather, exchange: of the block of one rank */
    struct tk_coll_fold fold;
    bool syncs_in, syncs_out; /* as a barrier does, before and after */
};

/* op->pending counts the collective until it no longer uses our buffers. */
void tk_coll_start(const struct tk_coll_call *call, struct tk_op *op);

/* The operation on elements of a built-in type; NULL: the type does not have it. */
gex_Coll_ReduceFn_t tk_coll_kernel(gex_DT_t dt, gex_OP_t op);
size_t tk_coll_type_size(gex_DT_t dt);

/* Before any communication, and before tk_teams_open(). */
void tk_coll_open(void);

/* Forces an algorithm like an entry of GASNET_COLL_ALGORITHM, between collectives; for benchmarks.
 * All members of a team must make the same call. False: there is no such algorithm. */
bool tk_coll_choose_force(const char *word);

/* One line for each kind of collective: which algorithm serves which sizes. False: there is no line
 * with this number. */
bool tk_coll_describe(unsigned line, char *text, size_t size);

#endif
