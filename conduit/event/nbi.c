/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns all sets of implicit operations: the free sets of access regions, under a lock of the
 * threading mode, and the sets of threads that have ended, under a real lock because the end of a
 * thread is not a call that a PARSYNC client serialises. Memory is never returned: the network may
 * still decrement a counter of a set whose thread has ended, and a client may still test a stale
 * leaf. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/client_mode.h"
#include "base/lock.h"
#include "base/report.h"
#include "event/nbi_now.h"
#include "op/threads.h"

/* GEX_EC_PUT contains GEX_EC_LC. */
enum { put_itself = GEX_EC_PUT & ~GEX_EC_LC };

TK_PER_CLIENT_THREAD struct tk_nbi_set *tk_nbi_now;
static TK_PER_CLIENT_THREAD struct tk_nbi_set *nbi_own; /* of this thread, outside access regions */

static tk_lock_t free_lock = TK_LOCK_INIT;
static struct tk_nbi_set *free_sets;

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tk_nbi_set *left_behind;
static pthread_key_t nbi_thread_end;
static pthread_once_t nbi_thread_end_once = PTHREAD_ONCE_INIT;

bool tk_nbi_done(const struct tk_nbi_set *set, gex_EC_t categories)
{
    const struct tk_op *ops = set->ops;
    return (!(categories & put_itself) || tk_op_done(&ops[TK_NBI_PUT])) &&
           (!(categories & GEX_EC_LC) ||
            (tk_op_source_free(&ops[TK_NBI_PUT]) && tk_op_done(&ops[TK_NBI_LC]))) &&
           (!(categories & GEX_EC_GET) || tk_op_done(&ops[TK_NBI_GET])) &&
           (!(categories & GEX_EC_RMW) || tk_op_done(&ops[TK_NBI_RMW]));
}

void tk_nbi_synced(struct tk_nbi_set *set, gex_EC_t categories)
{
    static const gex_EC_t needed[tk_nbi_kinds] = {[TK_NBI_PUT] = put_itself,
                                                  [TK_NBI_GET] = GEX_EC_GET,
                                                  [TK_NBI_RMW] = GEX_EC_RMW,
                                                  [TK_NBI_LC] = GEX_EC_LC};
    for (int kind = 0; TK_IS_DEBUG && kind < tk_nbi_kinds; kind++)
        if (categories & needed[kind])
            tk_unsynced_synced(&set->ops[kind]);
}

static void nbi_leave_behind(void *set)
{
    nbi_own = tk_nbi_now = NULL; /* later destructors of this thread may still call the library */
    pthread_mutex_lock(&left_lock);
    ((struct tk_nbi_set *)set)->next = left_behind;
    left_behind = set;
    pthread_mutex_unlock(&left_lock);
}

static void nbi_make_key(void)
{
    pthread_key_create(&nbi_thread_end, nbi_leave_behind);
}

/* Reuses the set of a thread that has ended, once its operations are complete too. */
static struct tk_nbi_set *nbi_reuse(void)
{
    struct tk_nbi_set **link = &left_behind, *set;
    pthread_mutex_lock(&left_lock);
    while ((set = *link) && !tk_nbi_done(set, GEX_EC_ALL))
        link = &set->next;
    if (set)
        *link = set->next;
    pthread_mutex_unlock(&left_lock);
    return set;
}

static struct tk_nbi_set *nbi_make_set(void)
{
    struct tk_nbi_set *set = aligned_alloc(TK_CACHE_LINE, tk_align_up(sizeof(*set), TK_CACHE_LINE));
    if (!set)
        tk_panic("out of memory for a set of implicit operations");
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        tk_op_init(&set->ops[kind]);
    for (int part = 0; part <= tk_nbi_kinds; part++)
        tk_counter_set(&set->marks[part], tk_set_mark + part);
    return set;
}

void tk_nbi_begin_thread(void)
{
    tk_thread_enter();
    nbi_own = nbi_reuse();
    if (!nbi_own)
        nbi_own = nbi_make_set();
    tk_nbi_now = nbi_own;
    if (!TK_SEVERAL_CLIENT_THREADS)
        return;
    pthread_once(&nbi_thread_end_once, nbi_make_key);
    pthread_setspecific(nbi_thread_end, nbi_own);
}

bool tk_nbi_in_region(void)
{
    return tk_nbi_now != nbi_own;
}

void tk_nbi_begin_region(void)
{
    if (!nbi_own)
        tk_nbi_begin_thread();
    tk_lock(&free_lock);
    struct tk_nbi_set *set = free_sets;
    if (set)
        free_sets = set->next;
    tk_unlock(&free_lock);
    tk_nbi_now = set ? set : nbi_make_set();
}

struct tk_nbi_set *tk_nbi_end_region(void)
{
    struct tk_nbi_set *set = tk_nbi_now;
    tk_nbi_now = nbi_own;
    return set;
}

void tk_nbi_give(struct tk_nbi_set *set)
{
    if (TK_IS_DEBUG)
        tk_nbi_synced(set, GEX_EC_ALL);
    tk_lock(&free_lock);
    set->next = free_sets;
    free_sets = set;
    tk_unlock(&free_lock);
}
