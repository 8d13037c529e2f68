/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that send, put, get and poll exist in several variants: otherwise conditions that
 * are known at start-up would cost a branch in each call. variants.c has the table of conditions
 * and functions. */
#ifndef TK_VERBS_VARIANTS_H
#define TK_VERBS_VARIANTS_H

#include "base/bits.h"
#include "base/status.h"
#include "transport/transport.h"

struct tk_peer;

/* Conditions, each a bit. They hold for all connections of this rank. Other ranks may have other
 * conditions, but all agree on XRC. */
enum {
    TK_VARIANT_FAILOVER = 1, /* connections to a peer replace each other: posted work is logged, and
                                received messages are counted */
    TK_VARIANT_SHARED = 2,   /* receive queues are shared */
    TK_VARIANT_XRC = 4,      /* send queue pairs are shared */
    TK_VARIANT_DEVICES = 8,  /* rails are on more than one device */
    tk_variants = 16
};

/* Members of struct tk_transport with the same names and contracts; `reap` also becomes
 * reap_in_handler. */
struct tk_verbs_variant {
    enum tk_status (*send_short)(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args, tk_short_busy *busy);
    enum tk_status (*send_small)(struct tk_peer *peer, unsigned tag, uint64_t args,
                                 tk_small_busy *busy);
    enum tk_status (*send_medium)(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes, tk_medium_busy *busy);
    bool (*send_long)(struct tk_peer *peer, struct tk_outgoing *message, uintptr_t remote);
    bool (*put)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes);
    bool (*put_from)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                     size_t nbytes);
    bool (*get)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes);
    bool (*poll)(void);
    bool (*reap)(void);
};

/* NULL: these conditions exclude each other. */
const struct tk_verbs_variant *tk_verbs_variant_of(unsigned conditions);

/* The conditions of this rank; after tk_xrc_agree(). */
unsigned tk_verbs_conditions(void);

/* Makes the table of this rank from the plain one. Call it before any peer gets the table. */
void tk_verbs_variant_choose(const struct tk_transport *plain);

/* That table; tk_verbs_transport() returns it. */
extern TK_HIDDEN struct tk_transport tk_verbs_chosen;

#endif
