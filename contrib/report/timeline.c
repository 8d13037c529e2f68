/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See timeline.h. Slices are aligned to time 0, so that two become one when the span of all ranks
 * outgrows them, whatever came first. A thread writes its calls in the order in which they end:
 * calls nested in another precede it, and the time of the outer one is what lies between them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/report/timeline.h"
#include "contrib/report/word_copy.h"

enum { longest_min = 16 };

static const char *const names[report_activities] = {
    "puts and gets",         "sending messages", "handlers",     "barriers",
    "collectives",           "event waits",      "credit waits", "waits for space",
    "waits for connections", "registration",     "other calls"};

const char *report_activity_name(enum report_activity activity)
{
    return names[activity];
}

enum report_activity report_activity_of(enum tk_trace_op op)
{
    if (tk_trace_is_handler(op))
        return REPORT_HANDLER;
    if (op == tk_trace_credit_wait)
        return REPORT_CREDIT_WAIT;
    if (op == tk_trace_room_wait)
        return REPORT_SPACE_WAIT;
    if (op == tk_trace_connect_wait)
        return REPORT_CONNECT_WAIT;
    if (op == tk_trace_memory_register || op == tk_trace_memory_deregister)
        return REPORT_REGISTRATION;
    switch (trace_op_letter(op)) {
    case 'P':
    case 'G':
        return REPORT_TRANSFER;
    case 'A':
        return REPORT_SEND;
    case 'B':
        return REPORT_BARRIER;
    case 'C':
        return REPORT_COLLECTIVE;
    case 'S':
        return REPORT_EVENT_WAIT;
    default:
        return REPORT_WORK;
    }
}

/* ---- slices ---- */

/* Pairs of slices become one each. */
static void coarsen(struct report_timeline *t)
{
    uint64_t first = t->first >> 1;
    for (size_t r = 0; r < t->row_count; r++) {
        uint64_t(*slices)[report_activities] = t->rows[r].slices;
        for (unsigned i = 0; i < report_slices; i++) {
            uint64_t to = ((t->first + i) >> 1) - first;
            for (unsigned a = 0; a < report_activities; a++) {
                uint64_t ns = slices[i][a];
                slices[i][a] = 0;
                slices[to][a] += ns;
            }
        }
    }
    report_tracks_coarsen(&t->tracks, t->first);
    t->first = first;
    t->shift++;
}

/* The first slice becomes an earlier one; those at the end are known to be empty. */
static void move_slices(struct report_timeline *t, uint64_t first)
{
    size_t by = (size_t)(t->first - first);
    report_tracks_move(&t->tracks, by);
    for (size_t r = 0; r < t->row_count; r++) {
        uint64_t(*slices)[report_activities] = t->rows[r].slices;
        memmove(slices + by, slices, (report_slices - by) * sizeof(slices[0]));
        memset(slices, 0, by * sizeof(slices[0]));
    }
    t->first = first;
}

static void cover(struct report_timeline *t, uint64_t begin, uint64_t end)
{
    if (!t->is_used) {
        t->is_used = true;
        t->begin = begin;
        t->end = end;
        t->first = begin >> t->shift;
    }
    t->begin = begin < t->begin ? begin : t->begin;
    t->end = end > t->end ? end : t->end;
    while ((t->end >> t->shift) - (t->begin >> t->shift) >= report_slices)
        coarsen(t);
    uint64_t first = t->begin >> t->shift;
    if (first < t->first)
        move_slices(t, first);
}

static void add_interval(struct report_timeline *t, struct report_row *row, uint64_t begin,
                         uint64_t end, enum report_activity activity)
{
    while (begin < end) {
        uint64_t slice = begin >> t->shift;
        uint64_t next = (slice + 1) << t->shift;
        uint64_t until = next < end ? next : end;
        row->slices[slice - t->first][activity] += until - begin;
        begin = until;
    }
}

/* ---- nesting ---- */

static struct report_thread *thread_of(struct report_row *row, uint32_t number)
{
    for (size_t i = 0; i < row->thread_count; i++)
        if (row->threads[i].number == number)
            return &row->threads[i];
    struct report_thread *threads =
        realloc(row->threads, (row->thread_count + 1) * sizeof(*threads));
    if (!threads)
        return NULL;
    row->threads = threads;
    threads[row->thread_count].number = number;
    threads[row->thread_count].count = 0;
    threads[row->thread_count].started = REPORT_WORK;
    return &threads[row->thread_count++];
}

/* A program waits for a barrier or a collective by its event. A trace does not say for which event
 * a wait is; the next one behind such a call, before any transfer, is taken to be for it. */
static enum report_activity activity_of(struct report_thread *thread, const struct trace_item *item)
{
    enum report_activity activity = report_activity_of(item->op);
    if (activity == REPORT_BARRIER || activity == REPORT_COLLECTIVE)
        thread->started = activity;
    else if (item->op == tk_trace_event_wait && thread->started != REPORT_WORK)
        activity = thread->started;
    if (item->op == tk_trace_event_wait || activity == REPORT_TRANSFER)
        thread->started = REPORT_WORK;
    return activity;
}

/* What lies between the nested calls is the call's own. If there were more than fit, the oldest are
 * forgotten, and their time counts twice. */
static void add_own(struct report_timeline *t, struct report_row *row, struct report_thread *thread,
                    const struct trace_item *item, enum report_activity activity)
{
    uint64_t at = item->begin, end = item->begin + item->ns;
    size_t inside = thread->count;
    while (inside > 0 && thread->recent[inside - 1].begin >= item->begin)
        inside--;
    for (size_t i = inside; i < thread->count; i++) {
        if (thread->recent[i].begin > at)
            add_interval(t, row, at, thread->recent[i].begin, activity);
        at = thread->recent[i].end > at ? thread->recent[i].end : at;
    }
    if (at < end)
        add_interval(t, row, at, end, activity);
    thread->count = inside;
    if (thread->count == report_recent_max) {
        thread->count /= 2;
        memmove(thread->recent, thread->recent + thread->count,
                thread->count * sizeof(thread->recent[0]));
    }
    thread->recent[thread->count].begin = item->begin;
    thread->recent[thread->count++].end = end;
}

/* ---- the longest calls ---- */

static void sift_down(struct report_call *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < count; i++)
            if (heap[i].ns < heap[least].ns)
                least = i;
        if (least == at)
            return;
        struct report_call swap = heap[at];
        heap[at] = heap[least];
        heap[least] = swap;
        at = least;
    }
}

static void sift_up(struct report_call *heap, size_t at)
{
    while (at > 0 && heap[at].ns < heap[(at - 1) / 2].ns) {
        struct report_call swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

static size_t share_of_a_row(const struct report_timeline *t)
{
    size_t share = report_longest_max / (t->row_count ? t->row_count : 1);
    return share > longest_min ? share : longest_min;
}

static void trim_longest(struct report_row *row, size_t share)
{
    while (row->longest_count > share) {
        row->longest[0] = row->longest[--row->longest_count];
        sift_down(row->longest, row->longest_count, 0);
    }
}

static bool add_longest(const struct report_timeline *t, struct report_row *row,
                        const struct trace_item *item, enum report_activity activity)
{
    size_t share = share_of_a_row(t);
    struct report_call call = {.begin = item->begin,
                               .ns = item->ns,
                               .bytes = item->bytes,
                               .thread = item->thread,
                               .peer = item->peer,
                               .op = item->op,
                               .activity = activity};
    if (row->longest_count >= share && row->longest[0].ns >= item->ns)
        return true;
    trim_longest(row, share - 1);
    if ((row->longest_count & (row->longest_count - 1)) == 0) {
        size_t room = row->longest_count ? 2 * row->longest_count : longest_min;
        struct report_call *longest = realloc(row->longest, room * sizeof(*longest));
        if (!longest)
            return false;
        row->longest = longest;
    }
    report_word_copy(call.place, sizeof(call.place), item->place);
    row->longest[row->longest_count] = call;
    sift_up(row->longest, row->longest_count++);
    return true;
}

/* ---- messages ---- */

static uint64_t hash_of(uint32_t from, uint32_t to, uint32_t sequence)
{
    uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 31 ^ sequence) * UINT64_C(0xbf58476d1ce4e5b9);
    hash ^= hash >> 29;
    return (hash * UINT64_C(0x94d049bb133111eb)) >> 1;
}

static struct report_message *slot_of(struct report_message *messages, uint64_t hash, uint32_t from,
                                      uint32_t to, uint32_t sequence)
{
    size_t at = hash % report_message_slots;
    while (messages[at].sequence && (messages[at].from != from || messages[at].to != to ||
                                     messages[at].sequence != sequence))
        at = (at + 1) % report_message_slots;
    return &messages[at];
}

/* Both ends decide by the same hash, so both are kept or neither. */
static bool halve_messages(struct report_timeline *t)
{
    struct report_message *messages = calloc(report_message_slots, sizeof(*messages));
    if (!messages)
        return false;
    t->messages_below /= 2;
    t->message_count = 0;
    for (size_t i = 0; i < report_message_slots; i++) {
        const struct report_message *m = &t->messages[i];
        if (!m->sequence || m->hash >= t->messages_below)
            continue;
        *slot_of(messages, m->hash, m->from, m->to, m->sequence) = *m;
        t->message_count++;
    }
    free(t->messages);
    t->messages = messages;
    return true;
}

static bool add_message(struct report_timeline *t, const struct trace_item *item)
{
    bool is_handler = tk_trace_is_handler(item->op);
    uint32_t from = is_handler ? item->peer : item->rank;
    uint32_t to = is_handler ? item->rank : item->peer;
    uint64_t hash = hash_of(from, to, item->sequence);
    if (!t->messages) {
        t->messages = calloc(report_message_slots, sizeof(*t->messages));
        t->messages_below = UINT64_MAX;
    }
    if (!t->messages)
        return false;
    t->messages_seen += !is_handler;
    if (hash >= t->messages_below)
        return true;
    struct report_message *m = slot_of(t->messages, hash, from, to, item->sequence);
    if (!m->sequence) {
        *m = (struct report_message){
            .from = from, .to = to, .sequence = item->sequence, .hash = hash};
        t->message_count++;
    }
    if (is_handler)
        m->handled = item->begin;
    else
        m->sent = item->begin;
    return t->message_count <= report_messages_max || halve_messages(t);
}

/* ---- rows ---- */

static bool grow_index(struct report_timeline *t, uint32_t rank)
{
    if (rank < t->row_of_room)
        return true;
    size_t room = t->row_of_room ? t->row_of_room : 64;
    while (room <= rank)
        room *= 2;
    uint32_t *row_of = realloc(t->row_of, room * sizeof(*row_of));
    if (!row_of)
        return false;
    memset(row_of + t->row_of_room, 0, (room - t->row_of_room) * sizeof(*row_of));
    t->row_of = row_of;
    t->row_of_room = room;
    return true;
}

static struct report_row *row_of(struct report_timeline *t, uint32_t rank)
{
    if (!grow_index(t, rank))
        return NULL;
    if (t->row_of[rank])
        return &t->rows[t->row_of[rank] - 1];
    if (t->row_count == t->row_room) {
        size_t room = t->row_room ? 2 * t->row_room : 16;
        struct report_row *rows = realloc(t->rows, room * sizeof(*rows));
        if (!rows)
            return NULL;
        t->rows = rows;
        t->row_room = room;
    }
    struct report_row *row = &t->rows[t->row_count];
    *row = (struct report_row){.rank = rank, .slices = calloc(report_slices, sizeof(*row->slices))};
    if (!row->slices)
        return NULL;
    t->row_of[rank] = (uint32_t)++t->row_count;
    for (size_t i = 0; i + 1 < t->row_count; i++)
        trim_longest(&t->rows[i], share_of_a_row(t));
    return row;
}

static bool add_mark(struct report_timeline *t, const struct trace_item *item)
{
    if (!t->marks)
        t->marks = calloc(report_marks_max, sizeof(*t->marks));
    if (!t->marks)
        return false;
    if (t->mark_count == report_marks_max) {
        t->marks_lost++;
        return true;
    }
    struct report_mark *mark = &t->marks[t->mark_count++];
    mark->at = item->begin;
    mark->rank = item->rank;
    report_word_copy(mark->text, sizeof(mark->text), item->text);
    return true;
}

bool report_timeline_add(struct report_timeline *t, const struct trace_item *item)
{
    struct report_row *row = row_of(t, item->rank);
    if (!row)
        return false;
    cover(t, item->begin, item->begin + item->ns);
    if (tk_trace_is_moment(item->op))
        return item->text.length == 0 || add_mark(t, item);
    if (!report_tracks_add(&t->tracks, t->shift, t->first, item))
        return false;
    if (tk_trace_is_beside(item->op))
        return true;
    struct report_thread *thread = thread_of(row, item->thread);
    if (!thread)
        return false;
    enum report_activity activity = activity_of(thread, item);
    if (!add_longest(t, row, item, activity))
        return false;
    add_own(t, row, thread, item, activity);
    bool is_message = tk_trace_is_send(item->op) || tk_trace_is_handler(item->op);
    return !is_message || !item->sequence || item->peer == tk_trace_no_peer || add_message(t, item);
}

void report_timeline_next_file(struct report_timeline *t)
{
    for (size_t r = 0; r < t->row_count; r++)
        for (size_t i = 0; i < t->rows[r].thread_count; i++)
            t->rows[r].threads[i].count = 0;
}

void report_timeline_free(struct report_timeline *t)
{
    for (size_t r = 0; r < t->row_count; r++) {
        free(t->rows[r].slices);
        free(t->rows[r].threads);
        free(t->rows[r].longest);
    }
    report_tracks_free(&t->tracks);
    free(t->rows);
    free(t->row_of);
    free(t->messages);
    free(t->marks);
    *t = (struct report_timeline){0};
}
