/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks: thin wrappers of pthread locks, or no-ops if there is only one thread (unless
 * GASNETT_USE_TRUE_MUTEXES). Not recursive. Debug libraries record the owner of a mutex and end the
 * program if the rules are broken. Owns nothing itself. */
#ifndef GASNET_TOOLS_LOCK_H
#define GASNET_TOOLS_LOCK_H

/* Nested, because objects for any mode poison GASNETT_THREAD_SAFE, and clang refuses such a name
 * even behind defined(). */
#if GASNETT_USE_TRUE_MUTEXES
#    define TRUNKLINE_REAL_LOCKS 1
#elif defined(TRUNKLINE_ANY_MODE)
#    define TRUNKLINE_REAL_LOCKS 0
#else
#    if defined(GASNETT_THREAD_SAFE)
#        define TRUNKLINE_REAL_LOCKS 1
#    else
#        define TRUNKLINE_REAL_LOCKS 0
#    endif
#endif

#if TRUNKLINE_REAL_LOCKS

#    include <pthread.h>

GASNETT_BEGIN_EXTERNC

/* ---- Mutex ---- */

#    if defined(GASNET_DEBUG)
typedef struct {
    pthread_mutex_t trunkline_mutex;
    volatile uintptr_t trunkline_owner;
} gasnett_mutex_t;
#        define TRUNKLINE_SET_OWNER(pl, who) ((pl)->trunkline_owner = (who))
#        define TRUNKLINE_CHECK_OWNER(pl, is_mine)                                                 \
            ((((pl)->trunkline_owner == (uintptr_t)pthread_self()) == (is_mine))                   \
                 ? (void)0                                                                         \
                 : trunkline_lock_misused(is_mine))
/* clang-format off: a brace list, not a block */
#        define GASNETT_MUTEX_INITIALIZER                                                          \
            {                                                                                      \
                PTHREAD_MUTEX_INITIALIZER, 0                                                       \
            }
/* clang-format on */
#    else
typedef struct {
    pthread_mutex_t trunkline_mutex;
} gasnett_mutex_t;
#        define TRUNKLINE_SET_OWNER(pl, who)       ((void)0)
#        define TRUNKLINE_CHECK_OWNER(pl, is_mine) ((void)(pl))
/* clang-format off: a brace list, not a block */
#        define GASNETT_MUTEX_INITIALIZER                                                          \
            {                                                                                      \
                PTHREAD_MUTEX_INITIALIZER                                                          \
            }
/* clang-format on */
#    endif

/* End the program: an assertion about a lock failed, or pthreads returned an error. */
void trunkline_lock_misused(int should_be_mine) GASNETT_NORETURN;
void trunkline_lock_failed(const char *call, int error) GASNETT_NORETURN;

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_assertlocked(gasnett_mutex_t *pl)
{
    TRUNKLINE_CHECK_OWNER(pl, 1);
}

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_assertunlocked(gasnett_mutex_t *pl)
{
    TRUNKLINE_CHECK_OWNER(pl, 0);
}

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_init(gasnett_mutex_t *pl)
{
    int error = pthread_mutex_init(&pl->trunkline_mutex, 0);
    TRUNKLINE_SET_OWNER(pl, 0);
    if_pf(error) trunkline_lock_failed("pthread_mutex_init", error);
}

/* Ignores errors of pthreads: for program exit, when threads may still be running. */
TRUNKLINE_TOOLS_INLINE int gasnett_mutex_destroy_ignoreerr(gasnett_mutex_t *pl)
{
    return pthread_mutex_destroy(&pl->trunkline_mutex);
}

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_destroy(gasnett_mutex_t *pl)
{
    int error = pthread_mutex_destroy(&pl->trunkline_mutex);
    if_pf(error) trunkline_lock_failed("pthread_mutex_destroy", error);
}

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_lock(gasnett_mutex_t *pl)
{
    int error;
    gasnett_mutex_assertunlocked(pl);
    error = pthread_mutex_lock(&pl->trunkline_mutex);
    if_pf(error) trunkline_lock_failed("pthread_mutex_lock", error);
    TRUNKLINE_SET_OWNER(pl, (uintptr_t)pthread_self());
}

/* 0 if acquired, EBUSY if the lock is held. */
TRUNKLINE_TOOLS_INLINE int gasnett_mutex_trylock(gasnett_mutex_t *pl)
{
    int busy = pthread_mutex_trylock(&pl->trunkline_mutex);
    if (!busy)
        TRUNKLINE_SET_OWNER(pl, (uintptr_t)pthread_self());
    return busy;
}

TRUNKLINE_TOOLS_INLINE void gasnett_mutex_unlock(gasnett_mutex_t *pl)
{
    int error;
    gasnett_mutex_assertlocked(pl);
    TRUNKLINE_SET_OWNER(pl, 0);
    error = pthread_mutex_unlock(&pl->trunkline_mutex);
    if_pf(error) trunkline_lock_failed("pthread_mutex_unlock", error);
}

/* ---- Condition ---- */

typedef struct {
    pthread_cond_t trunkline_cond;
} gasnett_cond_t;
/* clang-format off: a brace list, not a block */
#    define GASNETT_COND_INITIALIZER                                                               \
        {                                                                                          \
            PTHREAD_COND_INITIALIZER                                                               \
        }
/* clang-format on */

TRUNKLINE_TOOLS_INLINE void gasnett_cond_init(gasnett_cond_t *pc)
{
    int error = pthread_cond_init(&pc->trunkline_cond, 0);
    if_pf(error) trunkline_lock_failed("pthread_cond_init", error);
}

TRUNKLINE_TOOLS_INLINE void gasnett_cond_destroy(gasnett_cond_t *pc)
{
    int error = pthread_cond_destroy(&pc->trunkline_cond);
    if_pf(error) trunkline_lock_failed("pthread_cond_destroy", error);
}

/* Both under the mutex that waiters use. */
TRUNKLINE_TOOLS_INLINE void gasnett_cond_signal(gasnett_cond_t *pc)
{
    int error = pthread_cond_signal(&pc->trunkline_cond);
    if_pf(error) trunkline_lock_failed("pthread_cond_signal", error);
}

TRUNKLINE_TOOLS_INLINE void gasnett_cond_broadcast(gasnett_cond_t *pc)
{
    int error = pthread_cond_broadcast(&pc->trunkline_cond);
    if_pf(error) trunkline_lock_failed("pthread_cond_broadcast", error);
}

/* Does not poll the network; may wake up spuriously. */
TRUNKLINE_TOOLS_INLINE void gasnett_cond_wait(gasnett_cond_t *pc, gasnett_mutex_t *pl)
{
    int error;
    gasnett_mutex_assertlocked(pl);
    TRUNKLINE_SET_OWNER(pl, 0);
    error = pthread_cond_wait(&pc->trunkline_cond, &pl->trunkline_mutex);
    TRUNKLINE_SET_OWNER(pl, (uintptr_t)pthread_self());
    if_pf(error) trunkline_lock_failed("pthread_cond_wait", error);
}

/* ---- Reader-writer lock ---- */

/* Space for a pthread_rwlock_t, a type that strict ISO C lacks; all zeros is unlocked. */
typedef struct {
    union {
        long long trunkline_align;
        char trunkline_room[64];
    } trunkline_lock;
    volatile uintptr_t trunkline_writer;
} gasnett_rwlock_t;
/* clang-format off: a brace list, not a block */
#    define GASNETT_RWLOCK_INITIALIZER                                                             \
        {                                                                                          \
            {0}, 0                                                                                 \
        }
/* clang-format on */

#    define gasnett_rwlock_init           trunkline_rwlock_init
#    define gasnett_rwlock_destroy        trunkline_rwlock_destroy
#    define gasnett_rwlock_rdlock         trunkline_rwlock_rdlock
#    define gasnett_rwlock_wrlock         trunkline_rwlock_wrlock
#    define gasnett_rwlock_tryrdlock      trunkline_rwlock_tryrdlock
#    define gasnett_rwlock_trywrlock      trunkline_rwlock_trywrlock
#    define gasnett_rwlock_unlock         trunkline_rwlock_unlock
#    define gasnett_rwlock_assertlocked   trunkline_rwlock_assertlocked
#    define gasnett_rwlock_assertrdlocked trunkline_rwlock_assertrdlocked
#    define gasnett_rwlock_assertwrlocked trunkline_rwlock_assertwrlocked
#    define gasnett_rwlock_assertunlocked trunkline_rwlock_assertunlocked

void gasnett_rwlock_init(gasnett_rwlock_t *pl);
void gasnett_rwlock_destroy(gasnett_rwlock_t *pl);
void gasnett_rwlock_rdlock(gasnett_rwlock_t *pl);
void gasnett_rwlock_wrlock(gasnett_rwlock_t *pl);
int gasnett_rwlock_tryrdlock(gasnett_rwlock_t *pl); /* 0, EBUSY or EAGAIN */
int gasnett_rwlock_trywrlock(gasnett_rwlock_t *pl); /* 0 or EBUSY */
void gasnett_rwlock_unlock(gasnett_rwlock_t *pl);
void gasnett_rwlock_assertlocked(gasnett_rwlock_t *pl);
void gasnett_rwlock_assertrdlocked(gasnett_rwlock_t *pl);
void gasnett_rwlock_assertwrlocked(gasnett_rwlock_t *pl);
void gasnett_rwlock_assertunlocked(gasnett_rwlock_t *pl); /* by this thread, for writing */

GASNETT_END_EXTERNC

#elif !defined(TRUNKLINE_ANY_MODE)

typedef struct {
    char trunkline_nothing; /* C has no empty structs */
} gasnett_mutex_t;
typedef struct {
    char trunkline_nothing;
} gasnett_cond_t;
typedef struct {
    char trunkline_nothing;
} gasnett_rwlock_t;

/* clang-format off: brace lists, not blocks */
#    define GASNETT_MUTEX_INITIALIZER                                                              \
        {                                                                                          \
            0                                                                                      \
        }
#    define GASNETT_COND_INITIALIZER                                                               \
        {                                                                                          \
            0                                                                                      \
        }
#    define GASNETT_RWLOCK_INITIALIZER                                                             \
        {                                                                                          \
            0                                                                                      \
        }
/* clang-format on */

/* Evaluates the argument once, as a real lock does. */
#    define TRUNKLINE_NO_LOCK(name, type)                                                          \
        TRUNKLINE_TOOLS_INLINE void name(type *pl)                                                 \
        {                                                                                          \
            (void)pl;                                                                              \
        }
#    define TRUNKLINE_NO_TRYLOCK(name, type)                                                       \
        TRUNKLINE_TOOLS_INLINE int name(type *pl)                                                  \
        {                                                                                          \
            (void)pl;                                                                              \
            return 0;                                                                              \
        }
/* clang-format off: these are definitions, not calls */
TRUNKLINE_NO_LOCK(gasnett_mutex_init, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_mutex_destroy, gasnett_mutex_t)
TRUNKLINE_NO_TRYLOCK(gasnett_mutex_destroy_ignoreerr, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_mutex_lock, gasnett_mutex_t)
TRUNKLINE_NO_TRYLOCK(gasnett_mutex_trylock, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_mutex_unlock, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_mutex_assertlocked, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_mutex_assertunlocked, gasnett_mutex_t)
TRUNKLINE_NO_LOCK(gasnett_cond_init, gasnett_cond_t)
TRUNKLINE_NO_LOCK(gasnett_cond_destroy, gasnett_cond_t)
TRUNKLINE_NO_LOCK(gasnett_cond_signal, gasnett_cond_t)
TRUNKLINE_NO_LOCK(gasnett_cond_broadcast, gasnett_cond_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_init, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_destroy, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_rdlock, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_wrlock, gasnett_rwlock_t)
TRUNKLINE_NO_TRYLOCK(gasnett_rwlock_tryrdlock, gasnett_rwlock_t)
TRUNKLINE_NO_TRYLOCK(gasnett_rwlock_trywrlock, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_unlock, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_assertlocked, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_assertrdlocked, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_assertwrlocked, gasnett_rwlock_t)
TRUNKLINE_NO_LOCK(gasnett_rwlock_assertunlocked, gasnett_rwlock_t)
/* clang-format on */

/* No other thread could ever wake the only one. */
TRUNKLINE_TOOLS_INLINE void gasnett_cond_wait(gasnett_cond_t *pc, gasnett_mutex_t *pl)
{
    (void)pc;
    (void)pl;
}

#endif
#undef TRUNKLINE_REAL_LOCKS
#endif
