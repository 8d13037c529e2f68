/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Defers sends of a polling program to its next poll: acknowledgements, because an answer of the
 * program may follow, and posts that follow each other. One system call then sends several packets.
 * Owns the list of such queue pairs; its lock protects it, and is taken after sq_lock. */
#include "config.h"

#include "wire/udp/udp.h"

enum {
    listed_max = 64,
    posts_together = 16,
    few_packets = 2,
    habit_least = 4,
    prompt_times = 64,
};
static const uint64_t soon_ns = UINT64_C(50000);

static struct shca_lock list_lock;
static struct shca_qp *list[listed_max];
static unsigned listed;

/* If the program does other things before it polls, sends are not deferred for a while. */
static bool may_put_off(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;

    if (qp->qp.qp_type != IBV_QPT_RC || !shca_udp_polls() || shca_detours() || u->late)
        return false;
    if (u->prompt > 0)
        u->prompt--;
    return u->prompt == 0;
}

/* False: the list is full. */
static bool put_off(struct shca_qp *qp, uint64_t now)
{
    struct shca_udp *u = qp->udp;

    if (u->put_off)
        return true;
    if (!u->listed) {
        shca_lock(&list_lock);
        u->listed = listed < listed_max;
        if (u->listed)
            list[listed++] = qp;
        shca_unlock(&list_lock);
    }
    if (!u->listed)
        return false;
    u->put_off = now;
    atomic_fetch_add_explicit(&shca_udp.put_off, 1, memory_order_relaxed);
    return true;
}

/* Defers only if the program usually answers at once: if it does other things, or ends, the peer
 * must not wait. */
bool shca_udp_put_off_answer(struct shca_qp *qp, unsigned packets, uint64_t now)
{
    struct shca_udp *u = qp->udp;

    u->arrival_runs = atomic_load_explicit(&shca_udp.runs, memory_order_relaxed);
    return u->habit >= habit_least && packets <= few_packets && !u->broken && !u->sends_broken &&
           !u->locked && !u->draining && roce_only_acknowledges(u->e, now) && may_put_off(qp) &&
           put_off(qp, now);
}

/* A post that follows another one without a poll in between is one of several. */
bool shca_udp_put_off_post(struct shca_qp *qp, uint64_t now)
{
    uint32_t runs = atomic_load_explicit(&shca_udp.runs, memory_order_relaxed);
    bool several = qp->udp->seen_runs == runs;

    if (qp->udp->arrival_runs == runs && qp->udp->habit < habit_least)
        qp->udp->habit++;
    qp->udp->seen_runs = runs;
    return several && ++qp->udp->posts_off < posts_together && may_put_off(qp) && put_off(qp, now);
}

void shca_udp_put_off_done(struct shca_qp *qp, uint64_t now)
{
    struct shca_udp *u = qp->udp;

    u->posts_off = 0;
    if (!u->put_off)
        return;
    if (now > u->put_off + soon_ns)
        u->prompt = prompt_times;
    u->put_off = 0;
    atomic_fetch_sub_explicit(&shca_udp.put_off, 1, memory_order_relaxed);
}

/* shca_udp.lock is held, so that none of them is closed meanwhile. */
void shca_udp_put_off_run(uint64_t now, void (*touch)(struct shca_qp *qp, uint64_t now))
{
    struct shca_qp *all[listed_max];
    unsigned n;

    if (atomic_load_explicit(&shca_udp.put_off, memory_order_relaxed) == 0)
        return;
    shca_lock(&list_lock);
    n = listed;
    memcpy(all, list, n * sizeof all[0]);
    listed = 0;
    shca_unlock(&list_lock);
    for (unsigned i = 0; i < n; i++) {
        struct shca_udp *u = all[i]->udp;

        shca_lock(&all[i]->sq_lock);
        u->listed = false;
        if (u->put_off && u->put_off != now) {
            u->habit = 0;
            touch(all[i], now);
        } else if (u->put_off) { /* in this call */
            shca_udp_put_off_done(all[i], now);
            if (!put_off(all[i], now))
                touch(all[i], now);
        }
        shca_unlock(&all[i]->sq_lock);
    }
}

void shca_udp_put_off_end(struct shca_qp *qp)
{
    uint64_t now = tk_now();

    if (!qp->udp->put_off)
        return;
    shca_udp_put_off_done(qp, now);
    shca_udp_send(qp, SHCA_UDP_ANSWERS_ONLY, now);
}

/* shca_udp.lock is held. */
void shca_udp_put_off_close(struct shca_qp *qp)
{
    shca_lock(&list_lock);
    for (unsigned i = 0; i < listed; i++)
        if (list[i] == qp)
            list[i--] = list[--listed];
    shca_unlock(&list_lock);
}

void shca_udp_put_off_inherited(void)
{
    atomic_store(&list_lock.word, 0);
    listed = 0;
    atomic_store(&shca_udp.put_off, 0);
}
