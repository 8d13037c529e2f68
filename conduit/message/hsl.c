/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks the rules of handler-safe locks, for debug builds: not recursive, released in reverse
 * order, none held where the library may poll. Owns each thread's stack of held locks; no lock. */
#include "config.h"

#include "base/check.h"
#include "base/client_mode.h"
#include "base/wait_record.h"
#include "message/message.h"
#include "progress/progress.h"

enum { held_max = 64 /* per thread; locks beyond these are counted but not checked */ };

static TK_PER_CLIENT_THREAD unsigned hsl_count;
static TK_PER_CLIENT_THREAD const gex_HSL_t *hsl_held[held_max];

unsigned tk_hsls_held(void)
{
    return hsl_count;
}

void trunkline_hsl_wanted(const gex_HSL_t *hsl)
{
    for (unsigned i = 0; i < hsl_count && i < held_max; i++)
        TK_CHECK(hsl_held[i] != hsl,
                 "gex_HSL_Lock of %p, which this thread holds: these locks are not recursive",
                 (const void *)hsl);
}

void trunkline_hsl_taken(const gex_HSL_t *hsl)
{
    if (hsl_count < held_max)
        hsl_held[hsl_count] = hsl;
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

void trunkline_hsl_given(const gex_HSL_t *hsl)
{
    TK_CHECK(hsl_count != 0, "gex_HSL_Unlock of %p, but this thread holds no such lock",
             (const void *)hsl);
    hsl_count--;
    TK_CHECK(hsl_count >= held_max || hsl_held[hsl_count] == hsl,
             "gex_HSL_Unlock of %p, but this thread acquired %p after it: release in reverse order",
             (const void *)hsl, (const void *)hsl_held[hsl_count]);
}
