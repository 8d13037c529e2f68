/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks the rules of handler-safe locks, for debug builds: initialised and destroyed once, not
 * recursive, released in reverse order and soon, none held where the library may poll. Owns each
 * thread's stack of held locks; no lock. */
#include "config.h"

#include "base/check.h"
#include "base/client_mode.h"
#include "common/clock.h"
#include "base/report.h"
#include "base/thread_own.h"
#include "base/wait_record.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"

enum { held_max = 64 /* per thread; locks beyond these are counted but not checked */ };

static TK_PER_CLIENT_THREAD unsigned hsl_count;

struct held {
    const gex_HSL_t *hsl;
    uint64_t since; /* 0: not measured */
};

static struct held *hsl_held(void)
{
    return tk_thread_own(TK_OWN_LOCKS, held_max * sizeof(struct held));
}

/* The states of a lock; trunkline_hsl.h defines the one of GEX_HSL_INITIALIZER. */
enum { state_static = 0x5ca1ab1e, state_live = 0x1ce1ab1e, state_destroyed = 0x0dead10c };

unsigned tk_hsls_held(void)
{
    return hsl_count;
}

/* A warning only: the value may be left from a lock that was on this stack before, which needs no
 * gex_HSL_Destroy. */
static void warn_of_static(const gex_HSL_t *hsl)
{
    struct tk_call call = tk_call_last();
    tk_log_warn("gex_HSL_Init of %p, which GEX_HSL_INITIALIZER has initialised; called at %s:%u",
                (const void *)hsl, call.file ? call.file : "?", call.line);
}

void trunkline_hsl_init(gex_HSL_t *hsl, unsigned *state)
{
    TK_CHECK(*state != state_live,
             "gex_HSL_Init of %p, which is initialised: gex_HSL_Destroy comes first",
             (const void *)hsl);
    if (*state == state_static)
        warn_of_static(hsl);
    *state = state_live;
}

void trunkline_hsl_destroy(gex_HSL_t *hsl, unsigned *state)
{
    TK_CHECK(*state != state_destroyed, "gex_HSL_Destroy of %p, which was destroyed already",
             (const void *)hsl);
    for (unsigned i = 0; i < hsl_count && i < held_max; i++)
        TK_CHECK(hsl_held()[i].hsl != hsl, "gex_HSL_Destroy of %p, which this thread holds",
                 (const void *)hsl);
    *state = state_destroyed;
}

void trunkline_hsl_wanted(const gex_HSL_t *hsl)
{
    for (unsigned i = 0; i < hsl_count && i < held_max; i++)
        TK_CHECK(hsl_held()[i].hsl != hsl,
                 "gex_HSL_Lock of %p, which this thread holds: these locks are not recursive",
                 (const void *)hsl);
}

void trunkline_hsl_taken(const gex_HSL_t *hsl)
{
    if (hsl_count < held_max)
        hsl_held()[hsl_count] = (struct held){hsl, tk_settings.hsl_seconds > 0 ? tk_now() : 0};
    hsl_count++;
}

void trunkline_hsl_wait(gex_HSL_t *hsl)
{
    struct tk_wait_why why = {
        .kind = TK_WAITS_LOCK, .peer = tk_wait_nobody, .number = (uintptr_t)hsl};
    why.more = (uint32_t)TRUNKLINE_MUTEX((int)tk_wait_holder_of(&hsl->trunkline_mutex));
    tk_wait_note(&why, &tk_in_handler, true);
    (void)TRUNKLINE_MUTEX(pthread_mutex_lock(&hsl->trunkline_mutex));
    tk_wait_note_end();
}

/* Called at the release: threads that wanted the lock meanwhile have waited, and could not poll. */
static void check_duration(const gex_HSL_t *hsl, uint64_t since)
{
    double seconds = since ? (double)(tk_now() - since) / (double)TK_SECOND : 0;
    struct tk_call call = tk_call_last();
    if (seconds <= tk_settings.hsl_seconds || !since)
        return;
    tk_log_warn("gex_HSL_t %p was held for %.3f s; handlers that want it wait meanwhile "
                "(GASNET_HSL_SECONDS); released at %s:%u",
                (const void *)hsl, seconds, call.file ? call.file : "?", call.line);
}

void trunkline_hsl_given(const gex_HSL_t *hsl)
{
    TK_CHECK(hsl_count != 0, "gex_HSL_Unlock of %p, but this thread holds no such lock",
             (const void *)hsl);
    hsl_count--;
    TK_CHECK(hsl_count >= held_max || hsl_held()[hsl_count].hsl == hsl,
             "gex_HSL_Unlock of %p, but this thread acquired %p after it: release in reverse order",
             (const void *)hsl, (const void *)hsl_held()[hsl_count].hsl);
    if (hsl_count < held_max)
        check_duration(hsl, hsl_held()[hsl_count].since);
}
