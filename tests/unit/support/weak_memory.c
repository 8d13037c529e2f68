/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See weak_memory.h. Each atomic word has the list of all stores to it; each thread knows which
 * store of each word is the oldest that it may still read (its floors) and, as a vector clock, what
 * happened before. A releasing store carries both along, an acquiring load joins them in. Choices
 * (which thread continues, which store is read) form a tree that is walked depth first, by running
 * the program again with the choices of a prefix. What a thread knows follows from what it has
 * read, so a state is identified by that and by the order of stores. One thread, no lock. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weak_private.h"

enum {
    ranges_max = 16,
    choices_max = 1024,
    trace_max = 512,
    stack_size = 128 * 1024,
    table_bits = 22 /* of states seen */
};

struct range {
    const char *at;
    size_t size;
    enum weak_flaw flaw;
};

struct weak_count weak_count;

static const struct weak_program *program;
struct fiber fibers[weak_threads_max];
static char stacks[weak_threads_max][stack_size] __attribute__((aligned(64)));
static ucontext_t searcher;
int running = nobody, threads;
static struct word words[words_max];
unsigned words_used;
static struct range privates[ranges_max], flaws[ranges_max];
static unsigned privates_used, flaws_used;

static struct {
    unsigned chosen, of;
} choices[choices_max];
static unsigned choices_made, choices_known, surprises;

/* The events of this execution. */
static struct {
    const char *what;
    int thread;
    unsigned word, index;
    uint64_t value;
} trace[trace_max];
static unsigned traced;

static uint64_t *seen;
static char why_bad[160];
static bool bad, known_state;

/* ---- Choices ---- */

static _Noreturn void leave(void)
{
    setcontext(&searcher);
    abort();
}

_Noreturn void weak_fail(const char *why)
{
    snprintf(why_bad, sizeof(why_bad), "%s", why);
    bad = true;
    leave();
}

/* 0: the default. */
static unsigned choose(unsigned of)
{
    if (of == 1 || (program->bound && surprises == program->bound))
        return 0;
    if (choices_made == choices_known) {
        if (choices_known == choices_max)
            weak_fail("more choices than this search has room for");
        choices[choices_known].chosen = 0;
        choices[choices_known++].of = of;
    }
    surprises += choices[choices_made].chosen != 0;
    return choices[choices_made++].chosen;
}

/* The next path; false: there is none. */
static bool next_path(void)
{
    while (choices_known > 0) {
        if (++choices[choices_known - 1].chosen < choices[choices_known - 1].of)
            return true;
        choices_known--;
    }
    return false;
}

static void entry(const char *what, unsigned word, unsigned index, uint64_t value)
{
    if (traced == trace_max)
        return;
    trace[traced].what = what;
    trace[traced].thread = running;
    trace[traced].word = word;
    trace[traced].index = index;
    trace[traced++].value = value;
}

void weak_tell(void)
{
    for (unsigned i = 0; i < traced; i++)
        fprintf(stderr, "thread %d %-6s word %2u (%p), store %2u: 0x%llx\n", trace[i].thread,
                trace[i].what, trace[i].word, (void *)words[trace[i].word].at, trace[i].index,
                (unsigned long long)trace[i].value);
}

/* ---- States ---- */

uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = ((hash + UINT64_C(0x632be59bd9b4e019)) ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
    uint64_t piece;
    for (; n >= sizeof(piece); n -= sizeof(piece), bytes = (const char *)bytes + sizeof(piece)) {
        memcpy(&piece, bytes, sizeof(piece));
        hash = mix(hash, piece);
    }
    piece = 0;
    memcpy(&piece, bytes, n);
    return n ? mix(hash, piece) : hash;
}

uint64_t mix_view(uint64_t hash, const struct view *view)
{
    return mix_bytes(mix_bytes(hash, view->clock, sizeof(view->clock)), view->floor, words_used);
}

/* Has anything changed since weak_here()? Then the first values read may be stale. */
static bool saw_something(const struct fiber *fiber)
{
    return memcmp(&fiber->here, &fiber->view, sizeof(fiber->view)) != 0;
}

static uint64_t state_now(void)
{
    uint64_t hash = mix(surprises, (uint64_t)running);
    for (int i = 0; i < threads; i++) {
        hash = mix(mix(hash, fibers[i].history), fibers[i].state);
        hash = mix_view(mix(hash, saw_something(&fibers[i])), &fibers[i].view);
    }
    for (unsigned w = 0; w < words_used; w++) {
        hash = mix(hash, (uintptr_t)words[w].at);
        for (unsigned s = 0; s < words[w].count; s++) {
            const struct store *store = &words[w].stores[s];
            hash = mix(mix(hash, store->value), store->thread << 8 | store->clock);
            hash = mix_view(hash, &store->released);
        }
    }
    for (unsigned i = 0; i < privates_used; i++)
        hash = mix_bytes(hash, privates[i].at, privates[i].size);
    hash = mix_fences(mix_cells(hash));
    return hash ? hash : 1;
}

/* Was this state seen before? Only checked beyond the prefix that is run again. */
static bool was_here(void)
{
    const uint64_t mask = (UINT64_C(1) << table_bits) - 1;
    if (choices_made < choices_known)
        return false;
    uint64_t state = state_now();
    for (uint64_t i = state & mask;; i = (i + 1) & mask) {
        if (seen[i] == state)
            return true;
        if (seen[i] == 0) {
            if (++weak_count.states > mask / 2)
                weak_fail("more states than this search has room for");
            seen[i] = state;
            return false;
        }
    }
}

/* ---- Threads ---- */

static void join(struct view *to, const struct view *from)
{
    for (int i = 0; i < weak_threads_max; i++)
        if (to->clock[i] < from->clock[i])
            to->clock[i] = from->clock[i];
    for (unsigned w = 0; w < words_used; w++)
        if (to->floor[w] < from->floor[w])
            to->floor[w] = from->floor[w];
}

static unsigned unseen(const struct fiber *fiber, uint8_t list[words_max])
{
    unsigned n = 0;
    for (unsigned w = 0; w < words_used; w++)
        if (fiber->knows[w] && fiber->view.floor[w] + 1u < words[w].count)
            list[n++] = (uint8_t)w;
    return n;
}

static void switch_to(int next)
{
    int before = running;
    if (next == before)
        return;
    running = next;
    if (before == nobody || fibers[before].state == returned)
        setcontext(&fibers[next].context);
    swapcontext(&fibers[before].context, &fibers[next].context);
}

static bool can_run(const struct fiber *fiber)
{
    uint8_t list[words_max];
    return fiber->state == runnable ||
           ((fiber->state == paused || fiber->state == idle) && unseen(fiber, list) > 0);
}

/* Some thread goes on, this one for choice 0 if it can. */
void let_anybody_run(void)
{
    int able[weak_threads_max];
    unsigned n = 0;
    bool over = true;
    for (int k = 0; k < threads; k++) {
        int i = (running + threads + k) % threads;
        if (running == nobody)
            i = k;
        if (can_run(&fibers[i]))
            able[n++] = i;
        over = over && (fibers[i].state == returned || fibers[i].state == idle ||
                        (fibers[i].state == sleeping && fibers[i].serves));
    }
    if (n == 0 && over)
        leave();
    if (n == 0)
        weak_fail("nobody can go on");
    if (was_here()) {
        known_state = true;
        leave();
    }
    int next = able[choose(n)];
    switch_to(next);
}

void weak_here(uint64_t what)
{
    fibers[running].history = what;
    fibers[running].here = fibers[running].view;
}

static void pause_as(enum fiber_state state)
{
    uint8_t list[words_max];
    struct fiber *me = &fibers[running];
    if (saw_something(me))
        return;
    me->state = state;
    entry("pauses", 0, 0, 0);
    let_anybody_run();
    me->state = runnable;
    unsigned w = list[choose(unseen(me, list))];
    me->view.floor[w] = (uint8_t)(words[w].count - 1);
    me->history = mix(me->history, 0x100 + w * 256 + words[w].count);
}

void weak_pause(void)
{
    pause_as(paused);
}

void weak_serves(void)
{
    fibers[running].serves = true;
}

void weak_idle(void)
{
    pause_as(idle);
}

static void thread_main(void)
{
    program->thread[running]();
    fibers[running].state = returned;
    let_anybody_run();
}

/* ---- Words ---- */

static bool within(const struct range *ranges, unsigned count, const volatile void *at)
{
    for (unsigned i = 0; i < count; i++)
        if ((uintptr_t)at - (uintptr_t)ranges[i].at < ranges[i].size)
            return true;
    return false;
}

static bool broken(enum weak_flaw flaw, const volatile void *at)
{
    for (unsigned i = 0; i < flaws_used; i++)
        if (flaws[i].flaw == flaw && within(&flaws[i], 1, at))
            return true;
    return false;
}

static uint64_t plain_load(const volatile void *at, size_t size)
{
    return size == 8   ? *(const volatile uint64_t *)at
           : size == 4 ? *(const volatile uint32_t *)at
                       : *(const volatile uint8_t *)at;
}

static void plain_store(volatile void *at, size_t size, uint64_t value)
{
    if (size == 8)
        *(volatile uint64_t *)at = value;
    else if (size == 4)
        *(volatile uint32_t *)at = (uint32_t)value;
    else
        *(volatile uint8_t *)at = (uint8_t)value;
}

static unsigned word_at(const volatile void *at, size_t size)
{
    unsigned w;
    for (w = 0; w < words_used; w++)
        if (words[w].at == at)
            return w;
    if (words_used == words_max)
        weak_fail("more words than this search has room for");
    words[w] = (struct word){.at = (volatile void *)at, .size = size, .count = 1};
    words[w].stores[0].value = plain_load(at, size);
    words_used++;
    return w;
}

static bool is_plain(const volatile void *at)
{
    return running == nobody || within(privates, privates_used, at);
}

static bool acquires(int order)
{
    return order != memory_order_relaxed && order != memory_order_release;
}

static bool releases(int order)
{
    return order == memory_order_release || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

static const struct store *read_store(unsigned w, unsigned index, int order)
{
    struct fiber *me = &fibers[running];
    const struct store *store = &words[w].stores[index];
    me->view.floor[w] = (uint8_t)index;
    me->knows[w] = true;
    entry("reads", w, index, store->value);
    if (acquires(order) && !broken(weak_no_acquire, words[w].at))
        join(&me->view, &store->released);
    me->history = mix(me->history, (uint64_t)w << 16 | store->thread << 8 | store->clock);
    return store;
}

/* `after`: the store that an exchange read, whose release it carries on; else NULL. */
static void append(unsigned w, uint64_t value, int order, const struct store *after)
{
    struct fiber *me = &fibers[running];
    struct word *word = &words[w];
    if (word->count == stores_max)
        weak_fail("more stores than this search has room for");
    struct store *store = &word->stores[word->count];
    *store = (struct store){
        .value = value, .thread = (uint8_t)running, .clock = me->view.clock[running]};
    entry("stores", w, word->count, value);
    me->view.floor[w] = (uint8_t)word->count++;
    if (after)
        store->released = after->released;
    if (releases(order) && !broken(weak_no_release, word->at))
        join(&store->released, &me->view);
    if (me->view.clock[running]++ == UINT8_MAX) /* what follows is not released by this store */
        weak_fail("more stores than this search has room for");
}

uint64_t read_newest(const volatile void *at, size_t size)
{
    unsigned w = word_at(at, size);
    return read_store(w, words[w].count - 1, memory_order_relaxed)->value;
}

uint64_t weak_load(const volatile void *at, size_t size, int order)
{
    if (is_plain(at))
        return plain_load(at, size);
    let_anybody_run();
    unsigned w = word_at(at, size);
    unsigned floor = fibers[running].view.floor[w];
    unsigned back = choose(words[w].count - floor); /* 0: the newest */
    return read_store(w, words[w].count - 1 - back, order)->value;
}

void weak_store(volatile void *at, size_t size, uint64_t value, int order)
{
    if (is_plain(at)) {
        plain_store(at, size, value);
        if (!within(privates, privates_used, at))
            word_at(at, size); /* from the start: always under the same number */
        return;
    }
    let_anybody_run();
    append(word_at(at, size), value, order, NULL);
}

bool weak_cas(volatile void *at, size_t size, void *expected, uint64_t desired, int order)
{
    uint64_t wanted = plain_load(expected, size);
    if (is_plain(at) || broken(weak_torn_exchange, at)) {
        uint64_t value = weak_load(at, size, order);
        if (value == wanted)
            weak_store(at, size, desired, order);
        else
            plain_store(expected, size, value);
        return value == wanted;
    }
    let_anybody_run();
    unsigned w = word_at(at, size);
    const struct store *store = read_store(w, words[w].count - 1, order);
    if (store->value == wanted)
        append(w, desired, order, store);
    else
        plain_store(expected, size, store->value);
    return store->value == wanted;
}

static uint64_t changed(uint64_t old, enum weak_change change, uint64_t value)
{
    switch (change) {
    case weak_set:
        return value;
    case weak_add:
        return old + value;
    case weak_or:
        return old | value;
    default:
        return old & value;
    }
}

uint64_t weak_exchange(volatile void *at, size_t size, enum weak_change change, uint64_t value,
                       int order)
{
    if (is_plain(at)) {
        uint64_t old = plain_load(at, size);
        plain_store(at, size, changed(old, change, value));
        return old;
    }
    if (broken(weak_torn_exchange, at)) {
        uint64_t old = weak_load(at, size, order);
        if (changed(old, change, value) != old)
            weak_store(at, size, changed(old, change, value), order);
        return old;
    }
    let_anybody_run();
    unsigned w = word_at(at, size);
    const struct store *store = read_store(w, words[w].count - 1, order);
    uint64_t after = changed(store->value, change, value);
    /* The lock was already taken: such a store has no visible effect. */
    if (after != store->value || (order != memory_order_relaxed && order != memory_order_acquire))
        append(w, after, order, store);
    return store->value;
}

/* ---- The search ---- */

static void add_range(struct range *ranges, unsigned *used, struct range range)
{
    if (*used == ranges_max)
        abort();
    ranges[(*used)++] = range;
}

void weak_private(const void *memory, size_t size)
{
    add_range(privates, &privates_used, (struct range){.at = memory, .size = size});
}

void weak_break(enum weak_flaw flaw, const void *memory, size_t size)
{
    add_range(flaws, &flaws_used, (struct range){.at = memory, .size = size, .flaw = flaw});
}

void weak_repair(void)
{
    flaws_used = 0;
}

/* Address sanitizer: the unfinished frames of the previous fiber left marks on its stack. */
void __asan_unpoison_memory_region(const volatile void *at, size_t size) __attribute__((weak));

static void clean_stack(int thread)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(stacks[thread], stack_size);
}

static void make_fibers(void)
{
    for (threads = 0; threads < weak_threads_max && program->thread[threads]; threads++) {
        struct fiber *fiber = &fibers[threads];
        clean_stack(threads);
        fiber->state = runnable;
        fiber->view = (struct view){{0}, {0}};
        fiber->view.clock[threads] = 1;
        fiber->here = fiber->view;
        fiber->history = 0;
        fiber->serves = false;
        memset(fiber->knows, 0, sizeof(fiber->knows));
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = stacks[threads];
        fiber->context.uc_stack.ss_size = stack_size;
        fiber->context.uc_link = NULL;
        makecontext(&fiber->context, thread_main, 0);
    }
}

static void execute(void)
{
    volatile bool left = false;
    words_used = privates_used = 0;
    forget_cells();
    forget_fences();
    choices_made = traced = surprises = 0;
    running = nobody;
    known_state = false;
    program->start();
    for (unsigned w = 0; w < words_used; w++)
        words[w].stores[0].value = plain_load(words[w].at, words[w].size);
    make_fibers();
    getcontext(&searcher);
    if (!left) {
        left = true;
        let_anybody_run();
    }
    running = nobody;
    weak_count.executions++;
    for (unsigned w = 0; w < words_used; w++)
        plain_store(words[w].at, words[w].size, words[w].stores[words[w].count - 1].value);
    if (!bad && !known_state && program->end)
        program->end();
}

const char *weak_search(const struct weak_program *p)
{
    program = p;
    weak_count = (struct weak_count){0, 0};
    choices_known = 0;
    bad = false;
    seen = calloc(UINT64_C(1) << table_bits, sizeof(*seen));
    if (!seen)
        return "no memory for the search";
    do
        execute();
    while (!bad && next_path());
    free(seen);
    return bad ? why_bad : NULL;
}
