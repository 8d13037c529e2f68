/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The times at which end points must be called: a heap of queue pairs by time, so that queue pairs
 * without a timer cost nothing. A timer that moves to a later time is noticed only at its earlier
 * time: most timers move at each acknowledgement, which leaves the heap as it is. Owns the heap;
 * heap_lock protects it and is taken last. */
#include "config.h"

#include <stdlib.h>

#include "wire/udp/udp.h"

struct entry {
    uint64_t when;
    struct shca_qp *qp;
};

static struct shca_lock heap_lock;
static struct entry *heap; /* the children of entry i are 2i + 1 and 2i + 2 */
static uint32_t used, room, holders;

static const uint64_t msec = UINT64_C(1000000);

static void place(uint32_t at, struct entry e)
{
    heap[at] = e;
    e.qp->udp->place = at + 1;
    atomic_store_explicit(&e.qp->udp->key, e.when, memory_order_relaxed);
}

static void sift_up(uint32_t at, struct entry e)
{
    for (; at > 0 && heap[(at - 1) / 2].when > e.when; at = (at - 1) / 2)
        place(at, heap[(at - 1) / 2]);
    place(at, e);
}

static void sift_down(uint32_t at, struct entry e)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < used && heap[child + 1].when < heap[child].when)
            child++;
        if (child >= used || heap[child].when >= e.when)
            break;
        place(at, heap[child]);
        at = child;
    }
    place(at, e);
}

static void take_out(struct shca_qp *qp)
{
    uint32_t at = qp->udp->place - 1;
    struct entry last = heap[--used];

    qp->udp->place = 0;
    atomic_store_explicit(&qp->udp->key, ROCE_NEVER, memory_order_relaxed);
    if (last.qp == qp)
        return;
    if (at > 0 && heap[(at - 1) / 2].when > last.when)
        sift_up(at, last);
    else
        sift_down(at, last);
}

/* The helper thread is woken only if it would otherwise sleep beyond that time. */
void shca_udp_due(uint64_t when)
{
    uint64_t next = atomic_load(&shca_udp.next), until;

    while (when < next && !atomic_compare_exchange_weak(&shca_udp.next, &next, when))
        continue;
    until = atomic_load(&shca_udp.until);
    if (when != ROCE_NEVER && when + msec < until &&
        atomic_compare_exchange_strong(&shca_udp.until, &until, when))
        shca_helper_wake();
}

bool shca_udp_timer_open(struct shca_qp *qp)
{
    struct entry *more;
    bool good = true;

    shca_lock(&heap_lock);
    if (holders == room) {
        more = realloc(heap, (room ? 2 * room : 64) * sizeof *heap);
        good = more != NULL;
        if (good) {
            heap = more;
            room = room ? 2 * room : 64;
        }
    }
    holders += good;
    qp->udp->place = 0;
    atomic_store(&qp->udp->key, ROCE_NEVER);
    shca_unlock(&heap_lock);
    return good;
}

void shca_udp_timer_set(struct shca_qp *qp, uint64_t when)
{
    struct shca_udp *u = qp->udp;

    atomic_store(&u->again, when);
    /* After an entry is taken out, `again` is looked at. */
    if (when < atomic_load_explicit(&u->key, memory_order_relaxed)) {
        shca_lock(&heap_lock);
        if (u->place)
            sift_up(u->place - 1, (struct entry){when, qp});
        else
            sift_up(used++, (struct entry){when, qp});
        shca_unlock(&heap_lock);
    }
    shca_udp_due(when);
}

struct shca_qp *shca_udp_timer_take(uint64_t now)
{
    struct shca_qp *qp = NULL;

    shca_lock(&heap_lock);
    if (used > 0 && heap[0].when <= now) {
        qp = heap[0].qp;
        take_out(qp);
    }
    shca_unlock(&heap_lock);
    return qp;
}

uint64_t shca_udp_timer_next(void)
{
    uint64_t next;

    shca_lock(&heap_lock);
    next = used > 0 ? heap[0].when : ROCE_NEVER;
    shca_unlock(&heap_lock);
    return next;
}

void shca_udp_timer_close(struct shca_qp *qp)
{
    shca_lock(&heap_lock);
    if (qp->udp->place)
        take_out(qp);
    holders--;
    shca_unlock(&heap_lock);
}

/* The child cannot use the parent's queue pairs. */
void shca_udp_timer_inherited(void)
{
    atomic_store(&heap_lock.word, 0);
    used = holders = 0;
}
