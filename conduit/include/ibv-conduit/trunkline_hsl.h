/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handler-safe locks, which protect data shared by a client and its handlers. Real mutexes in PAR;
 * in SEQ and PARSYNC handlers run inside calls that the client itself serialises, so the locks cost
 * nothing there. Included by gasnetex.h.
 *
 * Rules for all modes: not recursive; owned by the thread; released in reverse order; no call that
 * may poll while one is held; a handler releases all it acquired before it returns. */
#ifndef TRUNKLINE_HSL_H
#define TRUNKLINE_HSL_H

#if defined(GASNET_PAR)
#    define TRUNKLINE_MUTEX(call) call
#else
#    define TRUNKLINE_MUTEX(call) 0
#endif

/* Debug builds check the rules above, and that a lock is initialised and destroyed once. The value
 * of the state tells whether the lock is initialised; other values mean memory that was never a
 * lock. */
#if defined(GASNET_DEBUG)
#    define TRUNKLINE_HSL_STATE      unsigned trunkline_state;
#    define TRUNKLINE_HSL_STATIC     , 0x5ca1ab1eu
#    define TRUNKLINE_HSL_NOTE(call) call
#else
#    define TRUNKLINE_HSL_STATE
#    define TRUNKLINE_HSL_STATIC
#    define TRUNKLINE_HSL_NOTE(call) ((void)0)
#endif

#if defined(GASNET_PAR)

typedef struct {
    pthread_mutex_t trunkline_mutex;
    TRUNKLINE_HSL_STATE
} gex_HSL_t;

/* clang-format off: a brace list, not a block */
#    define GEX_HSL_INITIALIZER                                                                    \
        {                                                                                          \
            PTHREAD_MUTEX_INITIALIZER TRUNKLINE_HSL_STATIC                                         \
        }
/* clang-format on */

#else

typedef struct {
    char trunkline_nothing; /* C has no empty structs */
    TRUNKLINE_HSL_STATE
} gex_HSL_t;

/* clang-format off: a brace list, not a block */
#    define GEX_HSL_INITIALIZER                                                                    \
        {                                                                                          \
            0 TRUNKLINE_HSL_STATIC                                                                 \
        }
/* clang-format on */

#endif

void trunkline_hsl_init(gex_HSL_t *hsl, unsigned *state);
void trunkline_hsl_destroy(gex_HSL_t *hsl, unsigned *state);
void trunkline_hsl_wanted(const gex_HSL_t *hsl);
void trunkline_hsl_taken(const gex_HSL_t *hsl);
void trunkline_hsl_given(const gex_HSL_t *hsl);
/* Takes a lock that another thread holds; PAR only. */
void trunkline_hsl_wait(gex_HSL_t *hsl);

TRUNKLINE_INLINE void gex_HSL_Init(gex_HSL_t *hsl)
{
    (void)hsl;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_init(hsl, &hsl->trunkline_state));
    (void)TRUNKLINE_MUTEX(pthread_mutex_init(&hsl->trunkline_mutex, 0));
}

TRUNKLINE_INLINE void gex_HSL_Destroy(gex_HSL_t *hsl)
{
    (void)hsl;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_destroy(hsl, &hsl->trunkline_state));
    (void)TRUNKLINE_MUTEX(pthread_mutex_destroy(&hsl->trunkline_mutex));
}

TRUNKLINE_INLINE void gex_HSL_Lock(gex_HSL_t *hsl)
{
    (void)hsl;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_wanted(hsl));
    if (TRUNKLINE_MUTEX(pthread_mutex_trylock(&hsl->trunkline_mutex)) != 0)
        trunkline_hsl_wait(hsl);
    TRUNKLINE_HSL_NOTE(trunkline_hsl_taken(hsl));
}

TRUNKLINE_INLINE void gex_HSL_Unlock(gex_HSL_t *hsl)
{
    (void)hsl;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_given(hsl));
    (void)TRUNKLINE_MUTEX(pthread_mutex_unlock(&hsl->trunkline_mutex));
}

/* GASNET_OK if acquired, GASNET_ERR_NOT_READY if the lock is held. */
TRUNKLINE_INLINE int gex_HSL_Trylock(gex_HSL_t *hsl)
{
    (void)hsl;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_wanted(hsl));
    if (TRUNKLINE_MUTEX(pthread_mutex_trylock(&hsl->trunkline_mutex)) != 0)
        return GASNET_ERR_NOT_READY;
    TRUNKLINE_HSL_NOTE(trunkline_hsl_taken(hsl));
    return GASNET_OK;
}

#endif
