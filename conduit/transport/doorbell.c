/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See doorbell.h. Owns this process's registration for membarrier, of which there is one. No lock.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/doorbell.h"

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Not private: sleeper and neighbour are two processes. */
static int futex(struct tk_doorbell *bell, int operation, uint32_t value,
                 const struct timespec *patience)
{
    return (int)syscall(SYS_futex, &bell->word, operation, value, patience, NULL, 0);
}

/* May be asked for again and again. */
static bool fences_come_by_themselves(void)
{
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

void tk_doorbell_prepare(void)
{
    fences_come_by_themselves();
}

void tk_doorbell_open(struct tk_doorbell *own)
{
    bool can = fences_come_by_themselves() && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
    atomic_store_explicit(&own->word, can ? 0 : TK_BELL_FENCED, memory_order_release);
}

void tk_doorbell_attach(struct tk_doorbell *bell)
{
    if (!fences_come_by_themselves())
        atomic_fetch_or_explicit(&bell->word, TK_BELL_FENCED, memory_order_acq_rel);
}

static void wake_all(struct tk_doorbell *bell)
{
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    while (word & TK_BELL_ASLEEP) {
        if (!atomic_compare_exchange_weak_explicit(&bell->word, &word,
                                                   word - TK_BELL_ASLEEP + TK_BELL_RUNG,
                                                   memory_order_acq_rel, memory_order_relaxed))
            continue;
        futex(bell, FUTEX_WAKE, INT_MAX, NULL);
        return;
    }
}

/* Both sides change the word where there is no membarrier, and of two changes one is first: if
 * ours, the sleeper's acquires what we wrote before; if the sleeper's, we see it. Adding nothing is
 * a change too. */
void tk_doorbell_look(struct tk_doorbell *bell)
{
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    if (word & TK_BELL_FENCED)
        word = atomic_fetch_or_explicit(&bell->word, TK_BELL_FENCED, memory_order_acq_rel);
    if (word & TK_BELL_ASLEEP)
        wake_all(bell);
}

/* This thread is awake. Another one may sleep, and the thread that clears ASLEEP must wake that
 * too. */
static void get_up(struct tk_doorbell *own)
{
    if (TK_THREADED)
        wake_all(own);
    else
        atomic_fetch_and_explicit(&own->word, ~(uint32_t)TK_BELL_ASLEEP, memory_order_relaxed);
}

bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what, uint64_t nsec)
{
    const struct timespec patience = {.tv_sec = (time_t)(nsec / TK_SECOND),
                                      .tv_nsec = (long)(nsec % TK_SECOND)};
    uint32_t word =
        atomic_fetch_or_explicit(&own->word, TK_BELL_ASLEEP, memory_order_acq_rel) | TK_BELL_ASLEEP;
    /* It worked when the bell was hung up; were it refused now, sleeping would not be safe. */
    bool sure = (word & TK_BELL_FENCED) || membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
    bool over = false;
    if (sure && !look(what))
        over = futex(own, FUTEX_WAIT, word, &patience) != 0 && errno == ETIMEDOUT;
    get_up(own);
    return !over;
}
