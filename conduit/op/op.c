/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slabs of operations. One chain of them per thread in PAR, otherwise one in all, so taking needs
 * no lock: the owner walks its chain cyclically and takes the next free operation. A round that
 * finds half of it in use doubles the chain, so a search takes a step or two however many
 * operations are in flight. Memory is never returned: a stale leaf event may still refer to it.
 *
 * The chain of a thread that ended is kept, under a lock, for the next thread, even with operations
 * in flight. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "op/op.h"
#include "op/threads.h"

enum {
    end_of_slab = 1 /* in place of a count after the last operation: reads as in use */
};

struct slab {
    struct slab *next;
    size_t count;
    struct tk_op ops[];
};

static struct tk_op nothing = {.pending = end_of_slab};
TK_PER_THREAD_NEAR struct tk_op *tk_ops_next = &nothing;

static TK_PER_THREAD struct slab *first, *current;
static TK_PER_THREAD size_t total;  /* operations in the chain */
static TK_PER_THREAD size_t in_use; /* of those looked at in this round */

static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab *orphans;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

/* Where to link the next slab of a chain; *count becomes the number of its operations. */
static struct slab **tail_of(struct slab **chain, size_t *count)
{
    *count = 0;
    for (; *chain; chain = &(*chain)->next)
        *count += (*chain)->count;
    return chain;
}

static void leave_behind(void *unused)
{
    size_t count;
    (void)unused;
    pthread_mutex_lock(&orphans_lock);
    *tail_of(&first, &count) = orphans;
    orphans = first;
    pthread_mutex_unlock(&orphans_lock);
    first = current = NULL; /* later destructors of this thread may still call us */
    total = in_use = 0;
    tk_ops_next = &nothing;
}

static void op_make_key(void)
{
    pthread_key_create(&thread_end, leave_behind);
}

/* A PARSYNC client does not serialise the end of a thread, so it must not touch the chain that all
 * threads share there. */
static void begin_thread(void)
{
    tk_thread_enter();
    if (!TK_THREADED)
        return;
    pthread_once(&thread_end_once, op_make_key);
    pthread_setspecific(thread_end, &thread_end);
}

static struct slab *make(size_t size)
{
    struct slab *slab = aligned_alloc(TK_CACHE_LINE, size);
    if (!slab)
        tk_panic("out of memory for %zu bytes of operations", size);
    slab->next = NULL;
    slab->count = (size - sizeof(*slab)) / sizeof(slab->ops[0]) - 1;
    for (size_t i = 0; i < slab->count; i++)
        tk_counter_set(&slab->ops[i].pending, tk_op_free);
    tk_counter_set(&slab->ops[slab->count].pending, end_of_slab);
    return slab;
}

/* One chain is enough: threads that start and end together leave chains for each other. */
static struct slab *inherit(void)
{
    pthread_mutex_lock(&orphans_lock);
    struct slab *slab = orphans;
    if (slab) {
        orphans = slab->next;
        slab->next = NULL;
    }
    pthread_mutex_unlock(&orphans_lock);
    return slab;
}

/* Doubles the chain, unless an ended thread left one. */
static struct slab *extend(void)
{
    struct slab **tail = tail_of(&first, &total);
    if (!first)
        begin_thread();
    struct slab *added = inherit();
    if (!added)
        added = make(tk_align_up(tk_max(tk_ops_first_bytes, total * sizeof(struct tk_op)),
                                 tk_ops_first_bytes));
    *tail = added;
    total += added->count;
    return added;
}

static struct slab *next_slab(void)
{
    if (current && current->next)
        return current->next;
    bool is_crowded = 2 * in_use >= total;
    in_use = 0;
    return is_crowded ? extend() : first;
}

struct tk_op *tk_ops_find(void)
{
    for (struct tk_op *op = tk_ops_next;; op++) {
        if (tk_counter_read(&op->pending) == tk_op_free) {
            tk_ops_next = op + 1;
            return op;
        }
        if (!current || op == &current->ops[current->count]) {
            current = next_slab();
            op = current->ops - 1;
        } else {
            in_use++;
        }
    }
}
