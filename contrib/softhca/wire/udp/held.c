/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delayed packets in flight, because of a rule or a rate limit. They have left their queue pair and
 * are sent when their time has come, whatever happens to it meanwhile, as in a network. Owns the
 * list of them, in the order of their times; held_lock protects it. */
#include "config.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/udp/udp.h"

/* A real network has no more space either: further packets are lost. */
enum { most = 4096 };

struct held {
    struct held *next;
    uint64_t due;
    uint32_t polls_until;
    bool polls; /* or when the program has polled so often */
    uint32_t port;
    const struct shca_udp_socket *by;
    union shca_udp_name name;
    socklen_t length;
    uint32_t n;
    uint8_t packet[];
};

static struct shca_lock held_lock;
static struct held *list;

bool shca_udp_hold(const struct shca_qp *qp, const struct shca_udp_to *to, const uint8_t *packet,
                   size_t n, const struct shca_udp_wait *wait)
{
    struct held *h = atomic_load(&shca_udp.held) < most ? malloc(sizeof *h + n) : NULL, **at;

    if (!h)
        return false;
    *h = (struct held){.due = wait->until,
                       .polls = wait->polls > 0,
                       .polls_until = atomic_load(&shca_fault_polls) + wait->polls,
                       .port = qp->sh->port,
                       .by = to->by,
                       .name = *to->name,
                       .length = to->length,
                       .n = (uint32_t)n};
    memcpy(h->packet, packet, n);
    shca_lock(&held_lock);
    for (at = &list; *at && (*at)->due <= h->due; at = &(*at)->next)
        continue;
    h->next = *at;
    *at = h;
    atomic_fetch_add(&shca_udp.held, 1);
    atomic_fetch_add(&shca_udp.held_polls, h->polls);
    shca_unlock(&held_lock);
    shca_udp_due(wait->until); /* another thread may have sent and freed the held packet */
    return true;
}

/* A cable that was pulled meanwhile stops it too. */
static void let_go(struct held *h)
{
    bool sent = false;

    if (!shca_path_cut(h->port, h->port))
        sent = sendto(h->by->fd, h->packet, h->n, 0, &h->name.any, h->length) > 0;
    atomic_fetch_add_explicit(sent ? &shca_udp.sent : &shca_udp.lost, 1, memory_order_relaxed);
    atomic_fetch_sub(&shca_udp.held, 1);
    atomic_fetch_sub(&shca_udp.held_polls, h->polls);
    free(h);
}

static bool ripe(const struct held *h, uint64_t now)
{
    uint32_t polls = atomic_load_explicit(&shca_fault_polls, memory_order_relaxed);

    return h->due <= now || (h->polls && (int32_t)(polls - h->polls_until) >= 0);
}

uint64_t shca_udp_let_go(uint64_t now)
{
    uint64_t next = ROCE_NEVER;

    if (atomic_load_explicit(&shca_udp.held, memory_order_relaxed) == 0)
        return next;
    shca_lock(&held_lock);
    for (struct held **at = &list; *at;) {
        struct held *h = *at;

        if (ripe(h, now)) {
            *at = h->next;
            let_go(h);
        } else {
            next = h->due < next ? h->due : next;
            at = &h->next;
        }
    }
    shca_unlock(&held_lock);
    return next;
}

void shca_udp_held_inherited(void)
{
    atomic_store(&held_lock.word, 0);
    list = NULL;
    atomic_store(&shca_udp.held, 0);
    atomic_store(&shca_udp.held_polls, 0);
}

/* The end of a process does not stop packets in flight. */
void shca_udp_held_end(void)
{
    if (shca.seg && shca.pid == (uint32_t)getpid())
        shca_udp_let_go(ROCE_NEVER);
}

__attribute__((destructor)) static void held_finish(void)
{
    shca_udp_held_end();
}
