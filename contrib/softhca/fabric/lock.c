/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slow path of the locks in shared memory: waiting, and taking over from a process that was
 * killed while it held the lock. Owns nothing; works on the shared memory of any segment that it is
 * given. */
#include "config.h"

#include <signal.h>

#include "fabric/fabric.h"

/* A holder keeps the lock for one message; 20 000 turns are some hundreds of yields, far more than
 * a short message takes, so that the registry (a file of the kernel) is rarely read without need.
 */
enum { turns_before_doubt = 20000 };

/* The registry also detects a holder that is a zombie or has called exec; but a child created
 * without pthread_atfork handlers may keep the sockets of a dead one open. */
bool shca_holder_gone(uint32_t pid)
{
    if (pid == 0 || pid == shca.pid)
        return false;
    return (kill((pid_t)pid, 0) != 0 && errno == ESRCH) || !shca_registry_has_pid(pid);
}

/* The dead holder may have published the slot at rq_head without moving rq_head. */
static void repair(struct shca_segment *seg, struct shca_qp_sh *q)
{
    uint32_t head = atomic_load(&q->rq_head);
    struct shca_slot *s;

    if (q->rq_kind != SHCA_RQ_OWN || q->rq.slots == 0)
        return;
    s = shca_slot_at(seg, &q->rq, head);
    if (atomic_load(&s->seq) == head + 1)
        atomic_store(&q->rq_head, head + 1);
}

bool shca_pid_lock_slow(_Atomic uint32_t *word, uint32_t pid)
{
    unsigned turns = 0;

    for (;;) {
        uint32_t seen = 0;

        if (atomic_compare_exchange_strong(word, &seen, pid))
            return false;
        shca_relax(&turns);
        if (turns % turns_before_doubt == 0 && shca_holder_gone(seen) &&
            atomic_compare_exchange_strong(word, &seen, pid))
            return true;
    }
}

void shca_rx_lock_slow(struct shca_segment *seg, struct shca_qp_sh *q, uint32_t pid)
{
    if (shca_pid_lock_slow(&q->lock, pid))
        repair(seg, q);
}

void shca_pid_quiesce(_Atomic uint32_t *word)
{
    unsigned turns = 0;
    uint32_t holder = atomic_load(word);

    /* A change of holder counts as a release. Two consecutive holds by one process look alike: then
     * this only waits a little longer. */
    while (holder != 0 && atomic_load(word) == holder) {
        shca_relax(&turns);
        if (turns % turns_before_doubt == 0 && shca_holder_gone(holder))
            return;
    }
}
