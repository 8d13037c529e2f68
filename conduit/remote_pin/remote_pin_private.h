/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of remote_pin/: the messages between ranks. An "ask" is a request to the rank
 * that owns the memory, the "answer" its reply. Both travel as arguments; the payload is the data
 * of a put or a get, or the keys of a region. */
#ifndef TK_REMOTE_PRIVATE_H
#define TK_REMOTE_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "message/message.h"

enum { TK_ASK_PUT = 1, TK_ASK_GET = 2, TK_ASK_REGION = 4 }; /* a put may also ask for a region */

struct tk_ask {
    uint64_t at;         /* address of the put or get, */
    uint64_t from, size; /* and the region */
    uint32_t nbytes;     /* of a get */
    uint32_t what;
    uint32_t give_up; /* handle of a region; 0: none */
    uint32_t flight;  /* returned with the answer: the operation, */
    uint32_t hose;    /* and the firehose; 0: none */
    uint32_t reserved;
};

struct tk_answer {
    uint64_t base, size; /* of the region */
    uint32_t handle;     /* of the region; 0: refused, or not asked for */
    uint32_t lent;       /* regions that the requester may have at once */
    uint32_t flight, hose;
};

enum { tk_ask_args = sizeof(struct tk_ask) / 4, tk_answer_args = sizeof(struct tk_answer) / 4 };

_Static_assert(sizeof(struct tk_ask) <= 4 * tk_max_args &&
                   sizeof(struct tk_answer) <= 4 * tk_max_args,
               "both fit into the arguments of a message");

/* How much data fits into a message. */
static inline size_t tk_data_max(void)
{
    return tk_medium_max(tk_max_args);
}

/* serve.c: the rank that owns the memory. `network` registers its regions. */
void tk_serve_open(void);
enum tk_status tk_serve_connect(const struct tk_transport *network, uint32_t askers);

/* flight.c: pieces in flight */
void tk_flights_open(void);

/* Posts `nbytes` of the transfer through `hose`, which stays in use until they are done, or
 * releases it; TK_BUSY if not all of them are posted. */
struct tk_hose;
enum tk_status tk_post_rdma(const struct tk_transport *network, struct tk_peer *peer,
                            const struct tk_rma *rma, struct tk_rma_state *state,
                            struct tk_hose *hose, size_t nbytes);

/* Sends them in a message, which may also ask for the region of `hose`; TK_BUSY: not now. */
enum tk_status tk_transfer_by_am(struct tk_peer *peer, const struct tk_rma *rma,
                                 struct tk_rma_state *state, struct tk_hose *hose, size_t nbytes);

/* Requests only the region. */
enum tk_status tk_call(struct tk_peer *peer, struct tk_hose *hose);

#endif
