/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Free lists of operations. One list per thread in PAR, one in all elsewhere, so taking and giving
 * need no lock; an operation given by another thread than took it just changes lists. Memory is
 * never returned: a stale leaf event may still look at it. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "transport/op.h"
#include "transport/threads.h"

enum { slab_items = 64 }; /* 1 to 2 KiB at a time */

TK_PER_THREAD struct tk_op *tk_ops_free;
static TK_PER_THREAD bool list_is_watched;

/* What threads left behind when they ended. */
static tk_lock_t orphans_lock = TK_LOCK_INIT;
static struct tk_op *orphans;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void adopt_list_of_ended_thread(void *unused)
{
    (void)unused;
    if (!tk_ops_free)
        return;
    struct tk_op *last = tk_ops_free;
    while (last->next)
        last = last->next;
    tk_lock(&orphans_lock);
    last->next = orphans;
    orphans = tk_ops_free;
    tk_unlock(&orphans_lock);
    tk_ops_free = NULL;
}

static void make_key(void)
{
    pthread_key_create(&thread_end, adopt_list_of_ended_thread);
}

void tk_ops_refill(void)
{
    tk_thread_enter();
    /* The end of a thread is no call that a client of PARSYNC serialises: it must not touch the
     * list that all threads share there. */
    if (TK_THREADED && !list_is_watched) {
        pthread_once(&thread_end_once, make_key);
        pthread_setspecific(thread_end, &list_is_watched);
        list_is_watched = true;
    }
    tk_lock(&orphans_lock);
    tk_ops_free = orphans;
    orphans = NULL;
    tk_unlock(&orphans_lock);
    if (tk_ops_free)
        return;
    struct tk_op *slab = aligned_alloc(TK_CACHE_LINE, slab_items * sizeof(*slab));
    if (!slab)
        tk_panic("out of memory for %d operations", slab_items);
    for (int i = 0; i < slab_items; i++) {
        slab[i].next = tk_ops_free;
        tk_ops_free = &slab[i];
    }
}
