/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records events. Owns the rings, one for each thread, each thread's record of the call in
 * progress, and a copy of each name of a source file, which is never freed: the program may unload
 * the library that contains the original. No lock. */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "base/futex.h"
#include "base/thread_own.h"
#include "stats/stats.h"
#include "trace/trace_private.h"

uint32_t tk_trace_mask;
struct tk_trace_ring *_Atomic tk_trace_rings;
_Atomic uint32_t tk_trace_bell;

struct file_name {
    struct file_name *next;
    char name[];
};

struct recorder {
    struct tk_trace_ring *ring;
    uint32_t peer, sequence; /* of the message that the current call sends */
    uint8_t handler;
    struct tk_trace_place place;
    int frozen;
};

static struct recorder *this_thread(void)
{
    return tk_thread_own(TK_OWN_TRACE, sizeof(struct recorder));
}

static uint32_t me;
static _Atomic(bool) is_open;
static _Atomic(bool) is_local_wanted;
static _Atomic uint32_t *numbers_sent, *numbers_seen; /* by peer */
static _Atomic uint32_t thread_count;
static struct file_name *_Atomic file_names;
static pthread_key_t end_of_thread;

static void thread_ends(void *ring)
{
    atomic_store_explicit(&((struct tk_trace_ring *)ring)->is_idle, true, memory_order_release);
}

bool tk_trace_recorder_open(const struct tk_trace_plan *plan)
{
    me = plan->rank;
    atomic_store(&is_local_wanted, plan->local);
    numbers_sent = calloc(plan->size, sizeof(*numbers_sent));
    numbers_seen = calloc(plan->size, sizeof(*numbers_seen));
    if (!numbers_sent || !numbers_seen || pthread_key_create(&end_of_thread, thread_ends) != 0)
        return false;
    atomic_store(&is_open, true);
    return true;
}

void tk_trace_recorder_close(void)
{
    atomic_store(&is_open, false);
    __atomic_store_n(&tk_trace_mask, 0, __ATOMIC_RELAXED);
}

bool tk_trace_is_open(void)
{
    return tk_is_traced && atomic_load_explicit(&is_open, memory_order_relaxed);
}

static struct tk_trace_ring *ring_of_ended_thread(void)
{
    for (struct tk_trace_ring *ring = tk_trace_rings; ring; ring = ring->next) {
        bool is_idle = true;
        if (atomic_compare_exchange_strong(&ring->is_idle, &is_idle, false))
            return ring;
    }
    return NULL;
}

static struct tk_trace_ring *ring_of_this_thread(void)
{
    struct recorder *mine = this_thread();
    if (mine->ring)
        return mine->ring;
    struct tk_trace_ring *ring = ring_of_ended_thread();
    if (!ring) {
        ring = calloc(1, sizeof(*ring));
        if (!ring)
            return NULL;
        ring->thread = thread_count++;
        ring->next = tk_trace_rings;
        while (!atomic_compare_exchange_weak(&tk_trace_rings, &ring->next, ring))
            ;
    }
    pthread_setspecific(end_of_thread, ring);
    return mine->ring = ring;
}

static void add(const struct tk_trace_event *event, const char *text, size_t length)
{
    struct tk_trace_ring *ring = ring_of_this_thread();
    if (!ring)
        return;
    uint64_t used = tk_trace_ring_add(ring, *event, text, length);
    if (used != tk_trace_ring_slots / 2)
        return;
    atomic_store(&tk_trace_bell, 1);
    tk_futex_wake_all(&tk_trace_bell);
}

/* ---- calls ---- */

/* Collectives and registrations move bytes by calls and messages of the library. */
static bool takes_rails(enum tk_trace_op op)
{
    return !tk_trace_is_handler(op) && strchr("PGARV", tk_trace_op_letters[op]);
}

void tk_trace_begin(struct tk_trace_call *call, enum tk_trace_op op, uint32_t peer, size_t nbytes)
{
    if (peer == me && !atomic_load_explicit(&is_local_wanted, memory_order_relaxed))
        return;
    /* Get the ring before the time is read. Otherwise this thread could take over the ring of a
     * thread that ended after that time, and the events of the two would overlap. */
    if (!ring_of_this_thread())
        return;
    struct recorder *mine = this_thread();
    *call = (struct tk_trace_call){.begin = tk_now(),
                                   .nbytes = nbytes,
                                   .place = mine->place,
                                   .peer = peer,
                                   .outer_peer = mine->peer,
                                   .outer_sequence = mine->sequence,
                                   .op = (uint8_t)op,
                                   .outer_path = tk_path_taken,
                                   .outer_handler = mine->handler};
    call->outer_rails = *tk_rails_taken();
    *tk_rails_taken() = takes_rails(op) ? &call->rails : NULL;
    tk_path_taken = 0;
    mine->peer = tk_trace_no_peer;
    mine->sequence = 0;
}

void tk_trace_waited(enum tk_trace_op op, uint32_t peer, uint64_t since)
{
    const struct recorder *mine = this_thread();
    const struct tk_trace_event event = {.begin = since,
                                         .end = tk_now(),
                                         .file = mine->place.kept,
                                         .line = mine->place.line,
                                         .peer = peer,
                                         .op = (uint8_t)op};
    if (ring_of_this_thread())
        add(&event, NULL, 0);
}

void tk_trace_connected(uint32_t peer, unsigned rail, uint64_t since)
{
    const struct tk_trace_event event = {.begin = since,
                                         .end = tk_now(),
                                         .peer = peer,
                                         .op = tk_trace_connect,
                                         .rail = (uint8_t)(rail + 1)};
    if (ring_of_this_thread())
        add(&event, NULL, 0);
}

/* Restores the sender's number from the 16 bits that the message carries: the result is the number
 * nearest to the highest number seen. */
static uint32_t number_of(uint32_t from, uint16_t number)
{
    if (!number)
        return 0;
    uint32_t last = atomic_load_explicit(&numbers_seen[from], memory_order_relaxed);
    int16_t ahead = (int16_t)(uint16_t)(number - (uint16_t)last);
    if (ahead > 0)
        atomic_store_explicit(&numbers_seen[from], last + (uint32_t)ahead, memory_order_relaxed);
    return last + (uint32_t)ahead;
}

void tk_trace_begin_handler(struct tk_trace_call *call, enum tk_trace_op op, uint32_t from,
                            uint8_t handler, size_t nbytes, uint16_t number)
{
    uint32_t sequence = number_of(from, number);
    tk_trace_begin(call, op, from, nbytes);
    call->sequence = sequence;
    call->handler = handler;
}

/* A handler's place is the one that the handler set itself. The place that its thread had set
 * before belongs to the call that the handler interrupts, and is restored after the handler. */
static struct tk_trace_place place_of(const struct tk_trace_call *call)
{
    struct tk_trace_place place = call->place;
    if (!tk_trace_is_handler(call->op))
        return place;
    struct recorder *mine = this_thread();
    bool is_its_own = mine->place.kept != place.kept || mine->place.line != place.line;
    place = is_its_own ? mine->place : (struct tk_trace_place){.kept = NULL};
    if (mine->frozen == 0)
        mine->place = call->place;
    return place;
}

enum { rails_text_size = tk_rails_taken_max * 24 };
_Static_assert((int)rails_text_size <= (int)tk_trace_text_max, "a list of rails is a text");

/* "0:4096,1:4096"; returns its size with the NUL. */
static size_t rails_text(const struct tk_rails_taken *rails, char text[rails_text_size])
{
    size_t length = 0;
    for (unsigned i = 0; i < tk_rails_taken_max; i++)
        if (rails->used & 1U << i)
            length += (size_t)snprintf(text + length, rails_text_size - length, "%s%u:%" PRIu64,
                                       length ? "," : "", i, rails->bytes[i]);
    return length + 1;
}

/* Without text, or with the list of several rails. */
static void add_with_rails(struct tk_trace_event *event, const struct tk_rails_taken *rails)
{
    char text[rails_text_size];
    bool has_one = rails->used && !(rails->used & (rails->used - 1));
    if (has_one)
        event->rail = (uint8_t)(__builtin_ctz(rails->used) + 1);
    event->has_rails = rails->used && !has_one;
    if (event->has_rails)
        add(event, text, rails_text(rails, text));
    else
        add(event, NULL, 0);
}

void tk_trace_end(const struct tk_trace_call *call)
{
    const struct tk_trace_place place = place_of(call);
    struct recorder *mine = this_thread();
    bool is_message = call->op >= tk_trace_request_short && call->op <= tk_trace_reply_long;
    struct tk_trace_event event = {.begin = call->begin,
                                   .end = tk_now(),
                                   .nbytes = call->nbytes,
                                   .file = place.kept,
                                   .line = place.line,
                                   .peer = is_message ? mine->peer : call->peer,
                                   .sequence = is_message ? mine->sequence : call->sequence,
                                   .op = call->op,
                                   .path = (uint8_t)tk_path_taken,
                                   .handler = is_message ? mine->handler : call->handler};
    mine->peer = call->outer_peer;
    mine->sequence = call->outer_sequence;
    mine->handler = call->outer_handler;
    tk_path_taken = call->outer_path;
    *tk_rails_taken() = call->outer_rails;
    if (event.peer != me || atomic_load_explicit(&is_local_wanted, memory_order_relaxed))
        add_with_rails(&event, &call->rails);
}

uint16_t tk_trace_number(uint32_t peer, uint8_t handler, bool is_numbered)
{
    uint32_t number = 0;
    while (is_numbered && !(uint16_t)number)
        number = 1 + atomic_fetch_add_explicit(&numbers_sent[peer], 1, memory_order_relaxed);
    struct recorder *mine = this_thread();
    mine->peer = peer;
    mine->handler = handler;
    mine->sequence = number;
    return (uint16_t)number;
}

/* The next message gets its number, unless another thread has taken a later one. */
void tk_trace_unsent(void)
{
    struct recorder *mine = this_thread();
    uint32_t number = mine->sequence;
    if (number)
        atomic_compare_exchange_strong_explicit(&numbers_sent[mine->peer], &number, number - 1,
                                                memory_order_relaxed, memory_order_relaxed);
    mine->sequence = 0;
}

/* ---- the program ---- */

void tk_trace_vprint(const char *format, va_list args)
{
    char text[tk_trace_text_max];
    if (!tk_trace_is_open())
        return;
    int length = vsnprintf(text, sizeof(text), format, args);
    if (length < 0)
        return;
    size_t n = strlen(text);
    if (n > 0 && text[n - 1] == '\n')
        n--;
    const struct recorder *mine = this_thread();
    struct tk_trace_event event = {.begin = tk_now(),
                                   .file = mine->place.kept,
                                   .line = mine->place.line,
                                   .peer = tk_trace_no_peer,
                                   .op = tk_trace_program};
    event.end = event.begin;
    add(&event, text, n);
}

bool tk_trace_local(void)
{
    return atomic_load_explicit(&is_local_wanted, memory_order_relaxed);
}

void tk_trace_local_set(bool local)
{
    atomic_store_explicit(&is_local_wanted, local, memory_order_relaxed);
}

/* Converts a set of class indices into a set of class letters: calls of the interface know the
 * letter of their class at compile time. */
static uint32_t by_letter(uint32_t classes)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < tk_stats_class_count; i++)
        if (classes & UINT32_C(1) << i)
            bits |= UINT32_C(1) << (tk_stats_classes[i].letter - 'A');
    return bits;
}

const char *tk_trace_mask_text(void)
{
    enum { size = 33 };
    char *text = tk_thread_own(TK_OWN_TRACE_MASK, size);
    uint32_t bits = __atomic_load_n(&tk_trace_mask, __ATOMIC_RELAXED);
    uint32_t classes = 0;
    for (unsigned i = 0; i < tk_stats_class_count; i++)
        if (bits & UINT32_C(1) << (tk_stats_classes[i].letter - 'A'))
            classes |= UINT32_C(1) << i;
    tk_stats_mask_format(classes, text, size);
    return text;
}

void tk_trace_mask_start(uint32_t classes)
{
    __atomic_store_n(&tk_trace_mask, by_letter(classes), __ATOMIC_RELAXED);
}

void tk_trace_mask_set(const char *wanted)
{
    uint32_t classes = 0;
    if (tk_trace_is_open() && (!*wanted || tk_stats_mask_parse(wanted, &classes)))
        tk_trace_mask_start(classes);
}

/* ---- lines of source ---- */

static const char *keep(const char *name)
{
    struct file_name *head = atomic_load_explicit(&file_names, memory_order_acquire);
    for (struct file_name *f = head; f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f->name;
    size_t size = strlen(name) + 1;
    struct file_name *more = malloc(sizeof(*more) + size);
    if (!more)
        return NULL;
    memcpy(more->name, name, size);
    more->next = head;
    /* Two threads may keep the same name twice. */
    while (!atomic_compare_exchange_weak(&file_names, &more->next, more))
        ;
    return more->name;
}

void tk_trace_line_set(const char *file, unsigned line)
{
    struct recorder *mine = this_thread();
    if (mine->frozen > 0)
        return;
    mine->place.line = line;
    if (file && file == mine->place.given && mine->place.kept &&
        strcmp(file, mine->place.kept) == 0)
        return;
    mine->place.given = file;
    mine->place.kept = file && tk_trace_is_open() ? keep(file) : NULL;
}

void tk_trace_line_get(const char **file, unsigned *line)
{
    const struct recorder *mine = this_thread();
    *file = mine->place.given;
    *line = mine->place.line;
}

void tk_trace_line_freeze(int by)
{
    this_thread()->frozen += by;
}
