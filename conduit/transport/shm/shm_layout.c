/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state that all files of transport/shm use, and the layout of a mapping of rings. Separate
 * from shm_open.c, which calls those files, so that they need nothing above them. Owns tk_shm, and
 * with it the file of our rings; shm_open.c fills it in. No lock: start-up and exit are
 * single-threaded, and in between only the rings change, which need none (ring.h). */
#include "config.h"

#include "memory/memory.h"
#include "transport/shm/shm_private.h"

struct tk_shm tk_shm = {.area = {.fd = -1}};

enum {
    doorbell_at = TK_CACHE_LINE,
    rings_at = 2 * TK_CACHE_LINE /* the first line has the nonce */
};

struct tk_shm_parts tk_shm_parts(char *base)
{
    char *payload = base + tk_shm.front;
    return (struct tk_shm_parts){
        .bell = (struct tk_doorbell *)(void *)(base + doorbell_at),
        .requests = (struct tk_ring_shared *)(void *)(base + rings_at),
        .replies = (struct tk_ring_shared *)(void *)(base + rings_at + tk_ring_bytes(tk_shm_slots)),
        .flags = payload - tk_flags_size,
        .request_payload = payload,
        .reply_payload = payload + 2 * (size_t)tk_shm_payload,
        .scratch = payload + 4 * (size_t)tk_shm_payload};
}

size_t tk_shm_front(void)
{
    return tk_align_up(rings_at + 2 * tk_ring_bytes(tk_shm_slots) + tk_flags_size, tk_page_size());
}

struct tk_doorbell *tk_shm_bell(void)
{
    return tk_shm.base ? tk_shm_parts(tk_shm.base).bell : NULL;
}

/* Only scratch pages that collectives touch become present: the first page of the channel that all
 * processes share. */
void tk_shm_footprint(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    if (shape->nbrhd < 2)
        return;
    total->shared += tk_shm_rings_bytes(tk_shm_front()) + tk_page_size();
    total->private_bytes += tk_shm_links_bytes(shape->nbrhd) + tk_shm_peers_bytes(shape->nbrhd) +
                            2 * tk_ring_done_bytes(tk_shm_slots, shape->is_threaded);
}
