/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered memory of the transport itself: bounce buffers, receive buffers, and the slabs that
 * contain them; also the keys of the segment. Each pool has a lock of its own. */
#ifndef TK_VERBS_BUFFER_H
#define TK_VERBS_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool_type.h"
#include "base/status.h"
#include "memory/memory.h"
#include "transport/transport.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_rail;

struct tk_conn;

enum {
    tk_buffer_size =
        tk_message_max, /* of a receive and of a bounce buffer: the largest Medium with its head */
    /* Space between buffers: without it the heads of all buffers would map to the same few cache
     * sets. tk_am_buffer_size needs it too. */
    tk_buffer_gap = TK_CACHE_LINE,
    tk_buffer_stride = tk_buffer_size + tk_buffer_gap,
};

/* Memory registered with all devices: one object for each, and the keys by rail. */
struct tk_registration {
    struct ibv_mr **mrs; /* by the device's index */
    uint32_t *remote;
    uint32_t local[];
};

/* A registered buffer of tk_buffer_size bytes, or of the size of a receive buffer. */
struct tk_buffer {
    struct tk_pool_item item;
    struct tk_conn *conn; /* while posted for receiving */
    char *data;
    const uint32_t *keys;  /* by rail; a receive buffer has only the key of its own device */
    struct ibv_recv_wr wr; /* posts it for receiving */
    struct ibv_sge sge;    /* length: of the message, while one waits in the buffer */
};

/* Registered slabs of buffers; see data/memory.c. */
struct tk_slab {
    struct tk_area area;
    struct tk_registration *registration;
    struct tk_slab *next;
    struct tk_buffer buffers[];
};

static inline size_t tk_buffer_stride_of(size_t size)
{
    return size + tk_buffer_gap;
}

/* Memory of a slab of so many buffers. Send buffers begin half a page later than receive buffers,
 * and than clients' data, which mostly begins with a page. A copy to an address slightly behind its
 * source, modulo the page size, must be cut into pieces (tk_copy_large()): 15 more calls for a
 * Medium of 4 KiB. */
enum { tk_send_buffers_at = 2048 };
static inline size_t tk_slab_area_bytes(size_t count, size_t size)
{
    return tk_send_buffers_at + count * tk_buffer_stride_of(size);
}

/* Sizes of allocations: a slab of so many buffers, without its area; a registration. */
static inline size_t tk_slab_bytes(size_t count)
{
    return sizeof(struct tk_slab) + count * sizeof(struct tk_buffer);
}

static inline size_t tk_registration_bytes(size_t rails, size_t devices)
{
    return sizeof(struct tk_registration) + 2 * rails * sizeof(uint32_t) + sizeof(uint64_t) +
           devices * sizeof(struct ibv_mr *);
}

/* Inside the segment of endpoint 0? */
static inline bool tk_is_registered(const void *address, size_t size)
{
    return tk_verbs.segment && tk_area_holds(&tk_segment_area, address, size);
}

/* Keys of local memory in the segment of endpoint 0, or in that of another local endpoint (`home`,
 * may be NULL). NULL: the memory is in neither. */
static inline const uint32_t *tk_local_keys(const struct tk_region *home, const void *at,
                                            size_t nbytes)
{
    if (tk_is_registered(at, nbytes))
        return tk_verbs.segment->local;
    return home && tk_region_holds(home, at, nbytes) ? home->local_keys : NULL;
}

static inline uint32_t tk_recv_size(void)
{
    return tk_verbs.recv_small ? tk_verbs.recv_small : tk_buffer_size;
}

/* data/memory.c */
enum tk_status tk_bounce_pool_open(unsigned count);
enum tk_status tk_large_pool_open(unsigned count);
/* Never NULL: registers more if necessary, and ends the job if that fails. */
struct tk_buffer *tk_large_buffer_take(void);
enum tk_status tk_fence_sink_open(void);
void tk_fence_sink_need(void);
enum tk_status tk_recv_pool_open(struct tk_rail *rail, unsigned count);
enum tk_status tk_recv_pool_grow(struct tk_rail *rail);
/* Grows the pool to `wanted` buffers; with the lock of demands. */
enum tk_status tk_recv_pool_fit(struct tk_rail *rail, unsigned wanted);
/* The number of buffers for so many connections of the rail; primary connections need most of
 * them. */
unsigned tk_recv_buffers_wanted(uint32_t conns, uint32_t primaries);
/* Takes a buffer to receive over the rail, and registers more if necessary. NULL: registration
 * failed, and the cause was logged. */
struct tk_buffer *tk_recv_buffer_take(struct tk_rail *rail);
void tk_buffers_close(void);
void tk_segment_forget(void); /* at exit: the segment stays registered */

#endif
