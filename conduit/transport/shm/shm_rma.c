/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets between neighbours: copies by this CPU, complete on return. A segment that is the
 * client's own memory cannot be mapped; the kernel copies to and from it. No lock. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "base/bits.h"
#include "base/copy.h"
#include "base/report.h"
#include "op/op_type.h"
#include "stats/stats.h"
#include "transport/shm/shm_private.h"

/* Other processes see a completed put before anything that we write next; a completed get has read
 * before anything that we read or write next. */
static inline void put(uintptr_t to, const char *from, size_t nbytes)
{
    tk_copy_whole((void *)to, from, nbytes);
    atomic_thread_fence(memory_order_release);
}

static inline void get(char *to, uintptr_t from, size_t nbytes)
{
    tk_copy_whole(to, (const void *)from, nbytes);
    atomic_thread_fence(memory_order_acquire);
}

bool tk_shm_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes)
{
    uintptr_t shift = tk_segment_addr_offset(peer->rank);
    tk_if_unlikely(shift == tk_unmapped || nbytes == 0) return false;
    put(remote + shift, local, nbytes);
    tk_count_transfer(tk_path_puts_shared, tk_counter_put_bytes_neighbours, nbytes);
    tk_counter_add(&op->pending, -1);
    return true;
}

bool tk_shm_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes)
{
    uintptr_t shift = tk_segment_addr_offset(peer->rank);
    tk_if_unlikely(shift == tk_unmapped || nbytes == 0) return false;
    get(local, remote + shift, nbytes);
    tk_count_transfer(tk_path_gets_shared, tk_counter_get_bytes_neighbours, nbytes);
    tk_counter_add(&op->pending, -1);
    return true;
}

/* ---- the client's own memory */

/* Copies nbytes with the kernel's help; 0 or an errno value. Large transfers may be cut. */
static int cross(const struct tk_peer *peer, char *local, uintptr_t remote, size_t nbytes,
                 bool is_put)
{
    while (nbytes > 0) {
        struct iovec mine = {.iov_base = local, .iov_len = nbytes};
        struct iovec theirs = {.iov_base = (void *)remote, .iov_len = nbytes};
        ssize_t n = is_put ? process_vm_writev(peer->pid, &mine, 1, &theirs, 1, 0)
                           : process_vm_readv(peer->pid, &mine, 1, &theirs, 1, 0);
        if (n < 0)
            return errno;
        local += n;
        remote += (uintptr_t)n;
        nbytes -= (size_t)n;
    }
    return 0;
}

enum tk_status tk_shm_try_segment(struct tk_peer *peer, const struct tk_bound *bound)
{
    char byte;
    int error = cross(peer, &byte, bound->base, 1, false);
    if (error == 0)
        return TK_OK;
    tk_log_error(
        "endpoint %u of rank %u (%s, pid %d) has a segment of the client's own memory, "
        "which this rank, its neighbour, can't reach: process_vm_readv: %s; let the "
        "library allocate the segment (address NULL), allow processes of one user to trace "
        "each other, or set GASNET_SUPERNODE_MAXSIZE=1",
        bound->endpoint, peer->rank, peer->host, peer->pid, strerror(error));
    return TK_FAIL;
}

static void cross_or_lose(struct tk_peer *peer, const struct tk_rma *rma)
{
    int error = cross(peer, rma->local, rma->remote, rma->nbytes, rma->is_put);
    if (error == 0)
        return;
    if (__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE))
        tk_log_error("%s of %zu bytes %s rank %u (%s, pid %d) failed at [%p, +%zu) there: %s",
                     rma->is_put ? "put" : "get", rma->nbytes, rma->is_put ? "to" : "from",
                     peer->rank, peer->host, peer->pid, (void *)rma->remote, rma->nbytes,
                     strerror(error));
    tk_shm_lose(peer);
}

/* ---- any memory */

static void rma_check(const struct tk_peer *peer, const struct tk_rma *rma,
                      const struct tk_bound *bound)
{
    if (tk_bound_has(bound, rma->remote, rma->nbytes))
        return;
    tk_panic("%s %s rank %u (%s): [%p, +%zu) is not inside the segment of its endpoint %u, as far "
             "as it is known here",
             rma->is_put ? "put" : "get", rma->is_put ? "to" : "from", peer->rank, peer->host,
             (void *)rma->remote, rma->nbytes, bound->endpoint);
}

static void count(const struct tk_rma *rma, bool by_kernel)
{
    static const enum tk_path_counted paths[2][2] = {{tk_path_gets_shared, tk_path_gets_kernel},
                                                     {tk_path_puts_shared, tk_path_puts_kernel}};
    if (!rma->is_payload && rma->nbytes > 0)
        tk_count_transfer(paths[rma->is_put][by_kernel],
                          rma->is_put ? tk_counter_put_bytes_neighbours
                                      : tk_counter_get_bytes_neighbours,
                          rma->nbytes);
}

/* On return sources are free and pieces complete, so nothing is counted. */
enum tk_status tk_shm_rma(struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state)
{
    uint32_t endpoint = rma->is_pair ? rma->endpoint : 0;
    uintptr_t shift = tk_bound_addr_offset(peer->rank, endpoint);
    tk_if_unlikely(shift == tk_unmapped)
    {
        const struct tk_bound bound = tk_bound_of(peer->rank, endpoint);
        rma_check(peer, rma, &bound);
        if (bound.fd < 0)
            cross_or_lose(peer, rma);
        else if ((shift = tk_shm_addr_offset(peer, endpoint)) == tk_unmapped)
            tk_shm_lose(peer);
    }
    state->done = rma->nbytes;
    count(rma, shift == tk_unmapped);
    if (shift == tk_unmapped)
        return TK_OK;
    if (rma->is_put)
        put(rma->remote + shift, rma->local, rma->nbytes);
    else
        get(rma->local, rma->remote + shift, rma->nbytes);
    return TK_OK;
}
