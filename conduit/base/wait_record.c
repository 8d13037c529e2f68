/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The record of waits. Owns tk_wait_page and the list of functions that describe waits; each thread
 * writes its own entry, which it takes by an atomic exchange. No lock. */
#include "config.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/report.h"
#include "base/thread_own.h"
#include "base/wait_record.h"

enum { describers_max = 8 };

/* A healthy wait has ended by then, and filling in rows visits each peer. */
static const uint64_t rows_after = TK_SECOND / 20, rows_every = TK_SECOND;

struct tk_wait_page tk_wait_page;

static void (*describers[describers_max])(struct tk_wait_rows *rows);
static unsigned describer_count;

struct waiter {
    struct tk_wait_thread *entry; /* NULL: it has none yet, or none was free */
    uint64_t described;           /* when */
    bool is_without;
};
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void tk_wait_describe_add(void (*describe)(struct tk_wait_rows *rows))
{
    for (unsigned i = 0; i < describer_count; i++)
        if (describers[i] == describe)
            return;
    if (describer_count == describers_max)
        tk_panic("more than %d describe waits", describers_max);
    describers[describer_count++] = describe;
}

void tk_wait_row_add(struct tk_wait_rows *rows, enum tk_wait_reason reason, uint32_t peer,
                     uint64_t number, uint64_t more)
{
    if (rows->count < tk_wait_rows)
        rows->at[rows->count++] = (struct tk_wait_row){reason, peer, number, more};
}

void tk_wait_record_open(uint32_t rank)
{
    tk_wait_page.rank = rank;
    tk_wait_page.pid = (uint32_t)getpid();
    tk_wait_page.size = sizeof(tk_wait_page);
    tk_wait_page.version = tk_wait_version;
    tk_wait_page.opened = tk_now();
    __atomic_store_n(&tk_wait_page.magic, (uint32_t)tk_wait_magic, __ATOMIC_RELEASE);
}

/* Belongs to one thread until it ends; the next thread that takes it sees everything that was
 * written. */
static void give_entry_back(void *entry)
{
    struct waiter *mine = tk_thread_owned(TK_OWN_WAIT);
    if (mine)
        mine->entry = NULL; /* later destructors of this thread may still wait */
    __atomic_store_n(&((struct tk_wait_thread *)entry)->tid, 0, __ATOMIC_RELEASE);
}

static void make_thread_end(void)
{
    pthread_key_create(&thread_end, give_entry_back);
}

static struct tk_wait_thread *take_entry(uint32_t tid)
{
    for (unsigned i = 0; i < tk_wait_threads; i++) {
        struct tk_wait_thread *entry = &tk_wait_page.threads[i];
        uint32_t nobody = 0;
        if (__atomic_compare_exchange_n(&entry->tid, &nobody, tid, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            entry->why.kind = TK_WAITS_NOT;
            return entry;
        }
    }
    return NULL;
}

static struct waiter *this_thread(void)
{
    struct waiter *mine = tk_thread_own(TK_OWN_WAIT, sizeof(*mine));
    if (mine->entry || mine->is_without)
        return mine;
    mine->entry = take_entry((uint32_t)syscall(SYS_gettid));
    mine->is_without = !mine->entry;
    if (mine->entry && pthread_once(&once, make_thread_end) == 0)
        pthread_setspecific(thread_end, mine->entry);
    return mine;
}

static void describe(struct tk_wait_thread *entry)
{
    struct tk_wait_rows rows = {.at = entry->rows};
    entry->row_count = 0;
    for (unsigned i = 0; i < describer_count; i++)
        describers[i](&rows);
    entry->row_count = rows.count;
}

void tk_wait_note(const struct tk_wait_why *why, const unsigned *in_handler, bool is_new)
{
    struct waiter *mine = this_thread();
    struct tk_wait_thread *entry = mine->entry;
    uint64_t now = tk_now();
    if (!entry)
        return;
    if (is_new || entry->why.kind != why->kind || entry->why.peer != why->peer) {
        entry->row_count = 0;
        entry->since = now;
        entry->in_handler = (uintptr_t)in_handler;
        mine->described = now + rows_after - rows_every;
    }
    entry->beat = now;
    entry->why = *why;
    if (now - mine->described >= rows_every) {
        mine->described = now;
        describe(entry);
    }
}

uint32_t tk_wait_holder_of(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
    return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
#else
    (void)mutex;
    return 0;
#endif
}

void tk_wait_note_end(void)
{
    struct tk_wait_thread *entry = this_thread()->entry;
    if (!entry || entry->why.kind == TK_WAITS_NOT)
        return;
    entry->why.kind = TK_WAITS_NOT;
    entry->row_count = 0;
    entry->ended = tk_now();
}
