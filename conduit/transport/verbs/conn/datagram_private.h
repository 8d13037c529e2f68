/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of datagram.c, for that file and for footprint.c, which reports its size. */
#ifndef TK_VERBS_DATAGRAM_PRIVATE_H
#define TK_VERBS_DATAGRAM_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "op/op_type.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/library.h"

enum {
    slot_size = 512, /* bytes of one datagram and of what the device puts before it */
    handles_max = 16 /* address handles that are kept */
};
_Static_assert(tk_datagram_front + sizeof(struct tk_datagram) <= slot_size, "a datagram");
_Static_assert(offsetof(struct tk_datagram, qps) + tk_datagram_front > sizeof(struct tk_short),
               "a datagram must not be as short as a Short");

/* Memory of a datagram that is being sent; free while its operation is complete. */
struct slot {
    struct tk_op op;
    struct tk_datagram *datagram;
};

/* The route of datagrams to a rank over a rail. */
struct handle {
    struct ibv_ah *ah;
    uint32_t to, rail;
};

struct rail_datagrams {
    struct tk_conn *conn; /* stands for the queue pair; its peer is NULL */
    struct tk_buffer *buffers;
    struct ibv_mr *mr; /* of all slots, receive slots first */
    char *memory;
    struct slot *sends;
};

struct tk_datagrams {
    int receives, sends;
    uint32_t key;
    uint8_t secret[tk_job_secret_size];
    uint32_t chance; /* state of the random choice of a rail */
    struct handle handles[handles_max];
    unsigned handle_count;
    uint64_t lost_since; /* since when our GID to some rank is in no table; 0: it is */
    uint32_t lost_to, lost_rail;
    struct rail_datagrams rails[];
};

/* Bytes for a rail with so many receive and send slots: of registered memory, and of other
 * memory. */
static inline size_t tk_datagrams_registered(int receives, int sends)
{
    return (size_t)(receives + sends) * slot_size;
}

static inline size_t tk_datagrams_bytes(int receives, int sends)
{
    return sizeof(struct rail_datagrams) + (size_t)receives * sizeof(struct tk_buffer) +
           (size_t)sends * sizeof(struct slot) + sizeof(struct tk_conn);
}

#endif
