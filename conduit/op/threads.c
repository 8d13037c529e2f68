/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See threads.h. With one client thread there is nothing to count. */
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/client_mode.h"
#include "base/report.h"
#include "op/thread_now.h"
#include "op/threads.h"

TK_PER_CLIENT_THREAD bool tk_thread_is_counted;

static atomic_int counted;
static int most = INT_MAX;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void leave(void *unused)
{
    (void)unused;
    tk_thread_is_counted = false;
    atomic_fetch_sub_explicit(&counted, 1, memory_order_relaxed);
}

static void threads_make_key(void)
{
    pthread_key_create(&thread_end, leave);
}

void tk_thread_enter(void)
{
    if (tk_thread_is_counted)
        return;
    tk_thread_is_counted = true;
    if (!TK_SEVERAL_CLIENT_THREADS)
        return;
    pthread_once(&thread_end_once, threads_make_key);
    pthread_setspecific(thread_end, &counted);
    int now = atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed) + 1;
    if (now > most)
        tk_panic("%d client threads use the library at once, and GASNET_MAX_THREADS allows %d: "
                 "set it to more, or let some of them end first",
                 now, most);
}

void tk_thread_exempt(void)
{
    tk_thread_is_counted = true;
}

void tk_thread_limit(int limit)
{
    most = limit;
}
