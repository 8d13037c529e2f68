/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Out-of-line parts of the header's locks: reader-writer locks, and messages of failed assertions.
 * Always real locks, also in a library for one thread, whose clients may ask for true mutexes. Owns
 * nothing: locks are the client's. */
#include "config.h"

#define GASNETT_USE_TRUE_MUTEXES 1
#include <pthread.h>
#include <string.h>

#include "gasnet_tools.h"

/* GASNETT_RWLOCK_INITIALIZER is all zeros, as are those in glibc and musl. */
_Static_assert(sizeof(pthread_rwlock_t) <= 64, "the header's room is too small");
_Static_assert(_Alignof(pthread_rwlock_t) <= _Alignof(gasnett_rwlock_t), "badly aligned");

static pthread_rwlock_t *real(gasnett_rwlock_t *pl)
{
    return (pthread_rwlock_t *)(void *)&pl->trunkline_lock;
}

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

static void must(const char *call, int error)
{
    if (error)
        trunkline_lock_failed(call, error);
}

void trunkline_lock_failed(const char *call, int error)
{
    gasnett_fatalerror_nopos("%s: %s", call, strerror(error));
}

void trunkline_lock_misused(int should_be_mine)
{
    gasnett_fatalerror_nopos(should_be_mine ? "a lock is not held by the thread that must hold it"
                                            : "a lock is held by the thread that must not hold it");
}

void gasnett_rwlock_init(gasnett_rwlock_t *pl)
{
    pl->trunkline_writer = 0;
    must("pthread_rwlock_init", pthread_rwlock_init(real(pl), NULL));
}

void gasnett_rwlock_destroy(gasnett_rwlock_t *pl)
{
    must("pthread_rwlock_destroy", pthread_rwlock_destroy(real(pl)));
}

void gasnett_rwlock_rdlock(gasnett_rwlock_t *pl)
{
    must("pthread_rwlock_rdlock", pthread_rwlock_rdlock(real(pl)));
}

void gasnett_rwlock_wrlock(gasnett_rwlock_t *pl)
{
    must("pthread_rwlock_wrlock", pthread_rwlock_wrlock(real(pl)));
    pl->trunkline_writer = self();
}

int gasnett_rwlock_tryrdlock(gasnett_rwlock_t *pl)
{
    return pthread_rwlock_tryrdlock(real(pl));
}

int gasnett_rwlock_trywrlock(gasnett_rwlock_t *pl)
{
    int busy = pthread_rwlock_trywrlock(real(pl));
    if (!busy)
        pl->trunkline_writer = self();
    return busy;
}

void gasnett_rwlock_unlock(gasnett_rwlock_t *pl)
{
    if (pl->trunkline_writer == self())
        pl->trunkline_writer = 0;
    must("pthread_rwlock_unlock", pthread_rwlock_unlock(real(pl)));
}

#if GASNET_DEBUG

/* If the lock can be taken for writing, no thread holds it. */
void gasnett_rwlock_assertlocked(gasnett_rwlock_t *pl)
{
    if (pthread_rwlock_trywrlock(real(pl)) == 0)
        trunkline_lock_misused(1);
}

void gasnett_rwlock_assertrdlocked(gasnett_rwlock_t *pl)
{
    gasnett_rwlock_assertlocked(pl);
    gasnett_rwlock_assertunlocked(pl);
}

void gasnett_rwlock_assertwrlocked(gasnett_rwlock_t *pl)
{
    if (pl->trunkline_writer != self())
        trunkline_lock_misused(1);
}

void gasnett_rwlock_assertunlocked(gasnett_rwlock_t *pl)
{
    if (pl->trunkline_writer == self())
        trunkline_lock_misused(0);
}

#else

void gasnett_rwlock_assertlocked(gasnett_rwlock_t *pl)
{
    (void)pl;
}

void gasnett_rwlock_assertrdlocked(gasnett_rwlock_t *pl)
{
    (void)pl;
}

void gasnett_rwlock_assertwrlocked(gasnett_rwlock_t *pl)
{
    (void)pl;
}

void gasnett_rwlock_assertunlocked(gasnett_rwlock_t *pl)
{
    (void)pl;
}

#endif
