/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of neighbours in this process: their message rings and their segments, mapped at first use
 * through /proc/PID/fd, which only requires the same user. Owns the mappings of rings; the table of
 * segments (peer/segment.c) owns those of segments. One lock, around any mapping. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/ranges.h"
#include "base/report.h"
#include "memory/memory.h"
#include "transport/shm/shm_private.h"

static tk_lock_t mapping = TK_LOCK_INIT;

/* True also for a process that is not reaped yet, or is about to vanish: its files are closed
 * first. */
static bool is_dead(const struct tk_peer *peer)
{
    enum { last_breath_ms = 100 };
    struct pollfd death = {.fd = (int)syscall(SYS_pidfd_open, peer->pid, 0), .events = POLLIN};
    if (death.fd < 0)
        return kill(peer->pid, 0) != 0 && errno == ESRCH;
    bool dead = poll(&death, 1, last_breath_ms) == 1;
    close(death.fd);
    return dead;
}

/* If the neighbour died before our first message to it, its watcher (exit/watch.c) knows more: the
 * watcher gives the launcher a second to report, and is about to end the job. On a busy host that
 * takes longer; after that a rank without a watcher is reported here. */
static void leave_it_to_its_watcher(const struct tk_peer *peer)
{
    struct timespec left = {.tv_sec = 10};
    if (!is_dead(peer))
        return;
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void log_refusal(const struct tk_peer *peer, const char *what, const char *why)
{
    if (!__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE))
        return;
    leave_it_to_its_watcher(peer);
    if (__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE))
        tk_log_error("can't map the %s of neighbour rank %u (%s, pid %d): %s", what, peer->rank,
                     peer->host, peer->pid, why);
}

/* The file is valid, but it can't be mapped. */
static void explain_no_space(char *why, size_t why_size, size_t size)
{
    snprintf(why, why_size, "mmap of %zu bytes: %s; look at ulimit -v", size, strerror(errno));
}

void tk_shm_lose(struct tk_peer *peer)
{
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (lost_peer)
        lost_peer(peer->rank);
}

static void add_range(const void *base, size_t size, const char *what, uint32_t rank)
{
    const struct tk_range range = {base, size, what, rank, -1};
    tk_range_add(&range);
}

/* ---- rings */

static bool map_piece(char *at, size_t size, int fd, size_t offset)
{
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) !=
           MAP_FAILED;
}

/* The payloads of both rings are mapped twice in a row, so that a message that wraps is contiguous.
 * Three parts of the file are mapped, one behind the other: from the start to the end of the first
 * payloads; from the start of the first payloads to the end of the second; from the start of the
 * second payloads to the end of the file. The first mapping has the length of all three, which
 * reserves address space for the others. */
char *tk_shm_map_rings(int fd)
{
    const size_t front = tk_shm.front, one = tk_shm_payload;
    char *base = mmap(NULL, tk_shm_mapped_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (map_piece(base + front + one, 2 * one, fd, front) &&
        map_piece(base + front + 3 * one, one + tk_shm.scratch, fd, front + one))
        return base;
    int error = errno;
    munmap(base, tk_shm_mapped_size());
    errno = error;
    return NULL;
}

/* The nonce proves that this is the file that the peer info means, even if pid and file number mean
 * something else here. */
static char *map_file(const struct tk_rings_place *rings, int fd, size_t size, char *why,
                      size_t why_size)
{
    if (size != tk_shm_file_size()) {
        snprintf(why, why_size, "it has %zu bytes, not %zu", size, tk_shm_file_size());
        return NULL;
    }
    char *base = tk_shm_map_rings(fd);
    if (!base) {
        explain_no_space(why, why_size, tk_shm_mapped_size());
        return NULL;
    }
    if (memcmp(base, rings->nonce, sizeof(rings->nonce)) == 0)
        return base;
    munmap(base, tk_shm_mapped_size());
    snprintf(why, why_size, "they are those of another job");
    return NULL;
}

static char *map_rings_of(const struct tk_peer *peer, const struct tk_rings_place *rings)
{
    char why[512];
    size_t size;
    char *base = NULL;
    const struct tk_area_place place = {.pid = peer->pid, .fd = rings->fd, .inode = rings->inode};
    int fd = tk_area_reach(&place, &size, why, sizeof(why));
    if (fd >= 0) {
        base = map_file(rings, fd, size, why, sizeof(why));
        close(fd);
    }
    if (!base)
        log_refusal(peer, "message rings", why);
    return base;
}

static struct tk_shm_conn *link_of(uint32_t rank)
{
    struct tk_shm_conn *link = tk_shm.links;
    while (link->peer->rank != rank)
        link++;
    return link;
}

static void attach_rings(struct tk_shm_conn *link, char *base)
{
    const struct tk_shm_parts at = tk_shm_parts(base);
    uint16_t from = (uint16_t)tk_topology.nbrhd_rank;
    tk_ring_out_open(&link->requests, at.requests, at.request_payload, tk_shm_slots, tk_shm_lines,
                     from);
    tk_ring_out_open(&link->replies, at.replies, at.reply_payload, tk_shm_slots, tk_shm_lines,
                     from);
    link->bell = at.bell;
    link->flags = at.flags;
    link->scratch = at.scratch;
    tk_doorbell_attach(link->bell);
    __atomic_store_n(&link->liveness, tk_shm_liveness_at(base), __ATOMIC_RELEASE);
    __atomic_store_n(&link->peer->connection, link, __ATOMIC_RELEASE);
}

struct tk_shm_conn *tk_shm_conn_make(struct tk_peer *peer)
{
    tk_lock(&mapping);
    if (!peer->connection) {
        struct tk_shm_conn *link = link_of(peer->rank);
        char *base = map_rings_of(peer, &link->place);
        if (base) {
            add_range(base, tk_shm_mapped_size(), "message rings", peer->rank);
            attach_rings(link, base);
        }
    }
    tk_unlock(&mapping);
    return peer->connection;
}

void *tk_shm_flags(uint32_t neighbour)
{
    if (neighbour == tk_topology.nbrhd_rank)
        return tk_shm_parts(tk_shm.base).flags;
    const struct tk_shm_conn *link = tk_shm_conn_make(tk_peer(tk_topology.nbrhd_ranks[neighbour]));
    return link ? link->flags : NULL;
}

void *tk_shm_scratch(uint32_t neighbour)
{
    if (neighbour == tk_topology.nbrhd_rank)
        return tk_shm_parts(tk_shm.base).scratch;
    struct tk_peer *peer = tk_peer(tk_topology.nbrhd_ranks[neighbour]);
    const struct tk_shm_conn *link = tk_shm_conn_make(peer);
    if (!link)
        tk_shm_lose(peer);
    return link ? link->scratch : NULL;
}

/* ---- segments */

static void map_segment(struct tk_peer *peer, const struct tk_bound *bound)
{
    char why[512];
    size_t size;
    const struct tk_area_place place = {.pid = peer->pid, .fd = bound->fd, .inode = bound->inode};
    int fd = tk_area_reach(&place, &size, why, sizeof(why));
    if (fd < 0) {
        log_refusal(peer, "segment", why);
        return;
    }
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        explain_no_space(why, sizeof(why), size);
    close(fd);
    if (base == MAP_FAILED) {
        log_refusal(peer, "segment", why);
        return;
    }
    tk_allow_huge_pages(base, size);
    add_range(base, size, "segment", peer->rank);
    tk_bound_mapped(peer->rank, bound->endpoint, (uintptr_t)base - bound->base, size);
}

uintptr_t tk_shm_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    uintptr_t shift = tk_bound_addr_offset(peer->rank, endpoint);
    const struct tk_bound bound = tk_bound_of(peer->rank, endpoint);
    if (shift != tk_unmapped || bound.size == 0 || bound.fd < 0)
        return shift;
    tk_lock(&mapping);
    if (tk_bound_addr_offset(peer->rank, endpoint) == tk_unmapped)
        map_segment(peer, &bound);
    tk_unlock(&mapping);
    return tk_bound_addr_offset(peer->rank, endpoint);
}

/* For systems on which processes of one user may not trace each other without permission. On other
 * systems the call fails, which is no error. */
void tk_shm_admit_neighbours(void)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}
