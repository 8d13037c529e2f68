/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of conn/ beside the connections themselves. open.c clears it at the end; the files of
 * conn/ fill it in. */
#ifndef TK_VERBS_CONNS_H
#define TK_VERBS_CONNS_H

#include <stdint.h>

#include "base/bits.h"
#include "peer/peer.h"

struct tk_conn;
struct tk_datagrams;
struct tk_demand;
struct tk_xrc;

struct tk_conns {
    struct tk_datagrams *datagrams; /* NULL: none in use; datagram.h */
    struct tk_demand *demand;       /* NULL: nothing is connected on demand; demand.h */
    struct tk_xrc *xrc;             /* NULL: each pair of ranks has its own queue pairs; xrc.h */
    struct tk_conn *ahead;          /* for the next peer, or NULL; with the lock of demands */
    uint32_t expected;              /* our guess which peer that is */
    uint8_t secret[tk_job_secret_size]; /* the job's: psn.h */
};
extern TK_HIDDEN struct tk_conns tk_conns;

#endif
