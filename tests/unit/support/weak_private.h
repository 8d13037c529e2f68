/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of weak_memory.h: a thread of the searched program and its knowledge. */
#ifndef WEAK_PRIVATE_H
#define WEAK_PRIVATE_H

#include <ucontext.h>

#include "weak_memory.h"

enum { words_max = 32, stores_max = 48, nobody = -1 };

struct view {
    uint8_t clock[weak_threads_max];
    uint8_t floor[words_max];
};

struct store {
    uint64_t value;
    struct view released;
    uint8_t thread, clock;
};

struct word {
    volatile void *at;
    size_t size;
    unsigned count;
    struct store stores[stores_max];
};

enum fiber_state { runnable, paused, idle, sleeping, returned };

struct fiber {
    ucontext_t context;
    enum fiber_state state;
    struct view view;
    uint64_t history;               /* of all that was read */
    struct view here;               /* its value when the thread last read all words again */
    bool knows[words_max];          /* words that it has read */
    const volatile void *sleeps_at; /* futex */
    bool serves;                    /* it may sleep when all others have done their part */
};

extern struct fiber fibers[weak_threads_max];
extern int threads;
extern int running; /* no thread: start() or end(), which access memory directly */
extern unsigned words_used;

/* A hash and some more. */
uint64_t mix(uint64_t hash, uint64_t value);
uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n);
uint64_t mix_view(uint64_t hash, const struct view *view);

/* A scheduling point: called before each access that others can see. */
void let_anybody_run(void);

/* A read by the kernel, which never sees an old value. */
uint64_t read_newest(const volatile void *at, size_t size);

/* weak_cells.c: plain memory. */
uint64_t mix_cells(uint64_t hash);
void forget_cells(void);

/* weak_system.c: the effects of full fences. */
uint64_t mix_fences(uint64_t hash);
void forget_fences(void);

#endif
