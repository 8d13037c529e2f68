/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of handler-safe locks, which the public header lets debug builds keep an eye on: not
 * recursive, given back in reverse order, none held where something may poll. Per thread: no lock.
 */
#include "config.h"

#include "base/mode.h"
#include "base/report.h"
#include "message/message.h"

enum { most_held = 64 /* at once by a thread; more are not looked at */ };

static TK_PER_CLIENT_THREAD unsigned count;
static TK_PER_CLIENT_THREAD const gex_HSL_t *held[most_held];

unsigned tk_hsls_held(void)
{
    return count;
}

void trunkline_hsl_wanted(const gex_HSL_t *hsl)
{
    for (unsigned i = 0; i < count && i < most_held; i++)
        if (held[i] == hsl)
            tk_panic("gex_HSL_Lock of %p, which this thread holds: these locks are not recursive",
                     (const void *)hsl);
}

void trunkline_hsl_taken(const gex_HSL_t *hsl)
{
    if (count < most_held)
        held[count] = hsl;
    count++;
}

void trunkline_hsl_given(const gex_HSL_t *hsl)
{
    if (count == 0)
        tk_panic("gex_HSL_Unlock of %p, but this thread holds no such lock", (const void *)hsl);
    count--;
    if (count < most_held && held[count] != hsl)
        tk_panic(
            "gex_HSL_Unlock of %p, but this thread took %p after it: give back in reverse order",
            (const void *)hsl, (const void *)held[count]);
}
