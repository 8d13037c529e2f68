/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The word in which each rank records how it ends, in the first line of its file. The watcher of a
 * neighbour maps the word before the neighbour dies: mostly with the rings, otherwise the first
 * page alone. Owns those pages. No lock: one thread watches; our own word changes by
 * compare-and-swap, because a signal handler may change it at the same time. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/memory.h"
#include "transport/shm/shm_private.h"

void tk_shm_set_liveness(enum tk_rank_liveness liveness)
{
    if (!tk_shm.base)
        return;
    _Atomic uint32_t *word = tk_shm_liveness_at(tk_shm.base);
    uint32_t now = atomic_load_explicit(word, memory_order_relaxed);
    while (now < (uint32_t)liveness &&
           !atomic_compare_exchange_weak_explicit(word, &now, liveness, memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

/* Logs no failure: the code that needs the neighbour itself does. */
static const _Atomic uint32_t *map_word(const struct tk_shm_conn *link)
{
    char why[512];
    size_t size;
    const struct tk_area_place place = {
        .pid = link->peer->pid, .fd = link->place.fd, .inode = link->place.inode};
    int fd = tk_area_reach(&place, &size, why, sizeof(why));
    if (fd < 0)
        return NULL;
    char *page = mmap(NULL, tk_page_size(), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return NULL;
    if (memcmp(page, link->place.nonce, sizeof(link->place.nonce)) == 0)
        return tk_shm_liveness_at(page);
    munmap(page, tk_page_size());
    return NULL;
}

const _Atomic uint32_t *tk_shm_liveness_of(uint32_t index)
{
    struct tk_shm_conn *link = &tk_shm.links[index];
    const _Atomic uint32_t *liveness = __atomic_load_n(&link->liveness, __ATOMIC_ACQUIRE);
    return liveness ? liveness : map_word(link);
}
