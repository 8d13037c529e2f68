/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomic operations on 8 bytes of remote memory. A region that lies in a shared file is mapped and
 * changed by atomic instructions of the CPU. Private memory can only be copied out and back in
 * (CMA), so every process that changes it, its owner included, holds a lock of the owner's segment
 * meanwhile. The two methods must never meet on one word: which one is right is a property of the
 * region, and a process that cannot use that one refuses. Owns the word locks; one of them is taken
 * last of all locks, under the responder lock of the target. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/request.h"

/* A holder keeps the lock for two system calls; see fabric/lock.c. */
enum { turns_before_doubt = 20000 };

static struct shca_word_lock *lock_word(struct shca_segment *seg, uint64_t va)
{
    /* Neighbouring counters are often used together: give them different locks. */
    uint32_t n = (uint32_t)((va >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SHCA_WORD_LOCKS;
    struct shca_word_lock *l = &shca_word_locks(seg)[n];
    unsigned turns = 0;

    for (;;) {
        uint32_t seen = 0;

        if (atomic_compare_exchange_strong(&l->holder, &seen, shca.pid))
            return l;
        shca_relax(&turns);
        /* A killed holder has changed the word or has not; the word is consistent in both cases. */
        if (turns % turns_before_doubt == 0 && shca_holder_gone(seen) &&
            atomic_compare_exchange_strong(&l->holder, &seen, shca.pid))
            return l;
    }
}

static uint64_t on_mapped(const struct shca_op *op, uint64_t *word)
{
    uint64_t expected = op->compare_add;

    if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        return __atomic_fetch_add(word, op->compare_add, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(word, &expected, op->swap, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return expected;
}

/* A card reads the word over the bus, and writes it back later: what the CPU stores in between is
 * lost. The lock is what orders the card's own operations. */
static void on_weak(struct shca_peer *p, const struct shca_op *op, const struct shca_piece *piece,
                    uint64_t *old)
{
    enum { bus_turns = 64 };
    struct shca_word_lock *l = lock_word(p->seg, piece->addr);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)piece->mapped;

    *old = atomic_load(word);
    for (int i = 0; i < bus_turns; i++)
        atomic_signal_fence(memory_order_seq_cst);
    if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        atomic_store(word, *old + op->compare_add);
    else if (*old == op->compare_add)
        atomic_store(word, op->swap);
    atomic_store_explicit(&l->holder, 0, memory_order_release);
}

static int on_private(struct shca_peer *p, const struct shca_op *op, struct shca_piece *piece,
                      uint64_t *old)
{
    struct shca_word_lock *l = lock_word(p->seg, piece->addr);
    struct iovec iov = {old, sizeof *old};
    uint64_t changed;
    int e = shca_move_in(p, &iov, 1, piece);

    iov.iov_base = &changed;
    changed = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? *old + op->compare_add : op->swap;
    if (e == 0 && (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || *old == op->compare_add))
        e = shca_move_out(p, piece, 1, &iov, 1);
    atomic_store_explicit(&l->holder, 0, memory_order_release);
    return e;
}

/* EOPNOTSUPP: this method cannot be used here. */
__attribute__((always_inline)) static inline int change(struct shca_peer *p, bool weak,
                                                        const struct shca_op *op,
                                                        const struct shca_mr_sh *m,
                                                        struct shca_piece *piece, uint64_t *old)
{
    if (m->fd == SHCA_FD_PRIVATE)
        return on_private(p, op, piece, old);
    if (m->fd == SHCA_FD_REACHABLE || !piece->mapped)
        return EOPNOTSUPP;
    if (__builtin_expect(weak, 0))
        on_weak(p, op, piece, old);
    else
        *old = on_mapped(op, (uint64_t *)(void *)piece->mapped);
    return 0;
}

int shca_atomic_change(struct shca_peer *p, const struct shca_op *op, const struct shca_mr_sh *m,
                       struct shca_piece *piece, uint64_t *old)
{
    return change(p, false, op, m, piece, old);
}

static void atomic_explain(void)
{
    static _Atomic int reported;

    if (!atomic_exchange(&reported, 1))
        shca_log("an atomic operation was refused: its memory is shared with other processes but "
                 "cannot be mapped here; keep its descriptor open until ibv_reg_mr, and register "
                 "each mapping by itself");
}

static void atomic_scatter(const struct shca_source *dst, uint64_t old)
{
    const char *from = (const char *)&old;

    for (unsigned i = 0; i < dst->n; i++) {
        memcpy(dst->iov[i].iov_base, from, dst->iov[i].iov_len);
        from += dst->iov[i].iov_len;
    }
}

/* A process that ends loses its program before its files, and these before its socket of the
 * registry. */
static bool is_ending(uint32_t pid)
{
    char path[32], program;

    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    return readlink(path, &program, 1) < 0 && errno == ENOENT;
}

int shca_atomic(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                const struct shca_source *dst, enum ibv_wc_status *status)
{
    struct shca_peer *p = qp->peer, *owner = shca_memory_of(qp);
    enum ibv_wc_status wrong;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t old;
    int e;

    if (t->max_dest_rd_atomic == 0 || op->remote_addr % sizeof old != 0)
        return shca_refuse(p, t, IBV_WC_REM_INV_REQ_ERR, status);
    wrong = shca_resolve(qp, t, op, IBV_ACCESS_REMOTE_ATOMIC, &m, &piece);
    /* The address may be aligned in a region with an iova that is not; hardware cannot do that
     * either. */
    if (wrong == IBV_WC_SUCCESS && piece.addr % sizeof old != 0)
        wrong = IBV_WC_REM_INV_REQ_ERR;
    if (wrong != IBV_WC_SUCCESS)
        return shca_refuse(p, t, wrong, status);
    e = change(owner, t->manners & SHCA_WEAK_ATOMICS, op, m, &piece, &old);
    if (e == EOPNOTSUPP && (shca_holder_gone(owner->pid) || is_ending(owner->pid)))
        e = ESRCH; /* memory that could not be mapped disappeared with its process */
    if (e == EOPNOTSUPP) {
        atomic_explain();
        return shca_refuse(p, t, IBV_WC_REM_OP_ERR, status);
    }
    if (e != 0)
        return shca_failed_copy(p, t, e, status);
    atomic_scatter(dst, old);
    SHCA_COUNT(atomics);
    return SHCA_DONE;
}
