/* SPDX-License-Identifier: BSD-3-Clause */
/* See explain.h. No state of its own, no lock. */
#include "config.h"

#include "explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state {
    UNKNOWN, /* its host has not answered, or it has no record */
    GONE,
    LEFT,
    STOPPED,
    WAITING,
    IN_HANDLER,
    BLOCKED, /* in a wait, but it no longer polls: it is in a function that a poll has called */
    OUTSIDE
};

struct explain_edge {
    uint32_t from, to;
    const struct tk_wait_row *row; /* NULL: by the kind of the wait */
};

/* A waiting thread polls at least every tenth of a second. */
static const uint64_t fresh = UINT64_C(1000000000);

enum { ranks_named = 8 };

bool explain_init(struct explain *e, uint32_t ranks)
{
    *e = (struct explain){.ranks = ranks};
    e->rank = calloc(ranks, sizeof(*e->rank));
    e->state = calloc(ranks, sizeof(*e->state));
    return e->rank && e->state;
}

void explain_free(struct explain *e)
{
    for (uint32_t r = 0; e->rank && r < e->ranks; r++)
        free(e->rank[r]);
    free(e->rank);
    free(e->state);
    free(e->edges);
    bytes_free(&e->text);
    *e = (struct explain){0};
}

bool explain_take(struct explain *e, uint32_t rank, const void *payload, size_t length)
{
    if (rank >= e->ranks || length != sizeof(struct waits_rank))
        return false;
    if (!e->rank[rank] && !(e->rank[rank] = malloc(length)))
        return false;
    struct waits_rank *w = e->rank[rank];
    memcpy(w, payload, length);
    w->doing[sizeof(w->doing) - 1] = w->why[sizeof(w->why) - 1] = 0;
    for (unsigned i = 0; i < tk_wait_threads; i++)
        if (w->page.threads[i].row_count > tk_wait_rows)
            w->page.threads[i].row_count = tk_wait_rows;
    return true;
}

/* ---- words */

static void add(struct explain *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct explain *e, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n > 0)
        bytes_append(&e->text, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static double seconds(uint64_t now, uint64_t then)
{
    return then && now > then ? (double)(now - then) / 1e9 : 0;
}

/* "rank 3", "ranks 0-2, 5 and 7", "ranks 0-3, 9, 11 and 20 more". */
static void add_ranks(struct explain *e, const uint32_t *ranks, uint32_t count)
{
    uint32_t i = 0;
    add(e, count == 1 ? "rank " : "ranks ");
    for (unsigned named = 0; i < count && named < ranks_named; named++) {
        uint32_t first = i;
        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
            i++;
        i = i == first + 1 ? i : i + 1; /* two in a row are no range */
        add(e, "%s%u", first == 0 ? "" : i == count ? " and " : ", ", ranks[first]);
        if (i - first > 1)
            add(e, "-%u", ranks[i - 1]);
    }
    if (i < count)
        add(e, " and %u more", count - i);
}

/* ---- states */

static bool may_be_over(uint32_t kind)
{
    return kind == TK_WAITS_CONDITION || kind == TK_WAITS_LAUNCHER;
}

/* The thread whose wait matters: the one that has waited for longest. */
static const struct tk_wait_thread *waiter_of(const struct waits_rank *w)
{
    const struct tk_wait_thread *found = NULL;
    for (unsigned i = 0; w->has_record && i < tk_wait_threads; i++) {
        const struct tk_wait_thread *t = &w->page.threads[i];
        bool is_stale = may_be_over(t->why.kind) && w->now - t->beat > fresh;
        if (!w->thread_state[i] || t->why.kind == TK_WAITS_NOT || is_stale)
            continue;
        if (!found || t->since < found->since)
            found = t;
    }
    return found;
}

static uint64_t last_polled(const struct waits_rank *w)
{
    uint64_t last = w->page.opened;
    for (unsigned i = 0; i < tk_wait_threads; i++) {
        const struct tk_wait_thread *t = &w->page.threads[i];
        last = t->beat > last ? t->beat : last;
        last = t->ended > last ? t->ended : last;
    }
    return last;
}

static bool is_in_handler(const struct waits_rank *w)
{
    for (unsigned i = 0; i < tk_wait_threads; i++)
        if (w->depth[i])
            return true;
    return false;
}

static enum state state_of(const struct waits_rank *w)
{
    if (!w)
        return UNKNOWN;
    if (!w->state)
        return w->is_done ? LEFT : GONE;
    if (w->state == 'T' || w->state == 't')
        return STOPPED;
    if (!w->has_record)
        return UNKNOWN;
    const struct tk_wait_thread *t = waiter_of(w);
    bool is_polling = t && (t->why.kind == TK_WAITS_LOCK || w->now - t->beat <= fresh);
    if (is_polling)
        return WAITING;
    if (is_in_handler(w))
        return IN_HANDLER;
    return t ? BLOCKED : OUTSIDE;
}

/* ---- chains and cycles of waits */

static void connect(struct explain *e, uint32_t from, uint32_t to, const struct tk_wait_row *row)
{
    if (to >= e->ranks)
        return;
    if (e->edge_count == e->edge_capacity) {
        size_t room = e->edge_capacity ? 2 * e->edge_capacity : 64;
        struct explain_edge *edges = realloc(e->edges, room * sizeof(*edges));
        if (!edges)
            return;
        e->edges = edges;
        e->edge_capacity = room;
    }
    e->edges[e->edge_count++] = (struct explain_edge){from, to, row};
}

static bool has_started(const struct waits_rank *w, uint64_t team, uint32_t sequence)
{
    for (unsigned i = 0; i < tk_wait_teams; i++)
        if (w->page.progress.started[i].team == team &&
            (int32_t)((uint32_t)w->page.progress.started[i].sequence - sequence) >= 0)
            return true;
    return false;
}

/* Whether the peer has not entered that barrier or collective at all. */
static bool is_missing(const struct explain *e, uint32_t peer, const struct tk_wait_row *row)
{
    const struct waits_rank *w = peer < e->ranks ? e->rank[peer] : NULL;
    if (!w || !w->has_record)
        return false;
    const struct tk_wait_progress *p = &w->page.progress;
    switch (row->reason) {
    case TK_REASON_BARRIER:
        return (int32_t)(p->barriers - (uint32_t)row->number) < 0;
    case TK_REASON_NAMED:
        return (int32_t)(p->named - (uint32_t)row->number) < 0;
    case TK_REASON_COLLECTIVE:
        return !has_started(w, row->more, (uint32_t)row->number);
    default:
        return false;
    }
}

/* Ranks in a barrier of all processes are matched by the barrier's number: all of them wait for the
 * ranks that have not entered it, whichever rank each one waits for a message from. */
static bool connect_missing(struct explain *e, uint32_t from, const struct tk_wait_row *row)
{
    bool any = false;
    if (row->reason != TK_REASON_BARRIER && row->reason != TK_REASON_NAMED)
        return false;
    for (uint32_t r = 0; r < e->ranks; r++)
        if (r != from && is_missing(e, r, row)) {
            connect(e, from, r, row);
            any = true;
        }
    return any;
}

/* A receiver may hold back some credits: a few missing credits explain a wait only if there is no
 * other explanation and the peer does not poll. */
static bool may_be_held_back(const struct explain *e, const struct tk_wait_row *row, bool is_found)
{
    bool is_few = row->reason == TK_REASON_UNANSWERED && row->number <= row->more;
    return is_few && row->peer < e->ranks && (is_found || e->state[row->peer] == WAITING);
}

/* It has not answered for a reason that was named already. */
static bool is_named(const struct explain *e, uint32_t from, const struct tk_wait_row *row)
{
    for (size_t i = e->edge_count; i > 0 && e->edges[i - 1].from == from; i--)
        if (row->reason == TK_REASON_UNANSWERED && e->edges[i - 1].to == row->peer)
            return true;
    return false;
}

static void connect_rank(struct explain *e, uint32_t r)
{
    const struct tk_wait_thread *t = waiter_of(e->rank[r]);
    bool is_direct = t->why.kind == TK_WAITS_SEND || t->why.kind == TK_WAITS_RMA;
    bool is_joined = false, is_found = false;
    for (uint32_t i = 0; i < t->row_count; i++) {
        const struct tk_wait_row *row = &t->rows[i];
        if (is_direct ? row->peer != t->why.peer || row->reason > TK_REASON_CONNECTING
                      : row->reason == TK_REASON_CREDIT && t->why.kind != TK_WAITS_EVENT &&
                            t->why.kind != TK_WAITS_CONDITION)
            continue;
        if (is_joined && (row->reason == TK_REASON_BARRIER || row->reason == TK_REASON_NAMED))
            continue;
        if (may_be_held_back(e, row, is_found) || is_named(e, r, row))
            continue;
        bool joined = connect_missing(e, r, row);
        is_joined |= joined;
        is_found = true;
        if (!joined)
            connect(e, r, row->peer, row);
    }
    if (is_direct && !is_found)
        connect(e, r, t->why.peer, NULL);
}

/* ---- sentences */

static const char *call_name(uint64_t call)
{
    static const char *const names[] = {
        [TK_CALL_INIT] = "gex_Client_Init",
        [TK_CALL_SPLIT] = "gex_TM_Split",
        [TK_CALL_CREATE] = "gex_TM_Create",
        [TK_CALL_DESTROY] = "gex_TM_Destroy",
        [TK_CALL_PUBLISH] = "gex_EP_PublishBoundSegment",
        [TK_CALL_AD_CREATE] = "gex_AD_Create (debug libraries compare the members' arguments)"};
    return call < sizeof(names) / sizeof(names[0]) ? names[call] : "a call of a team";
}

/* The ranks in a barrier differ only in their number, so they share one line. */
static void add_reason(struct explain *e, const struct explain_edge *edge)
{
    const struct tk_wait_row *row = edge->row;
    uint32_t to = edge->to;
    if (!row) {
        add(e, "for space to send to rank %u", to);
        return;
    }
    bool missing = is_missing(e, to, row);
    switch (row->reason) {
    case TK_REASON_CREDIT:
        add(e, "for a credit of rank %u: all %llu are out", to, (unsigned long long)row->number);
        break;
    case TK_REASON_UNANSWERED:
        add(e, "for rank %u, which has not answered %llu request%s", to,
            (unsigned long long)row->number, row->number == 1 ? "" : "s");
        break;
    case TK_REASON_CONNECTING:
        add(e, "to be connected with rank %u", to);
        break;
    case TK_REASON_COLLECTIVE:
        add(e,
            missing ? "in collective %llu of team %llx: rank %u has not entered it"
                    : "in collective %llu of team %llx for rank %u",
            (unsigned long long)row->number, (unsigned long long)row->more, to);
        break;
    case TK_REASON_TEAM:
        add(e, "in %s for rank %u", call_name(row->number), to);
        break;
    default:
        add(e, "in %s %llu for word of rank %u, which has entered it",
            row->reason == TK_REASON_NAMED ? "named barrier" : "barrier",
            (unsigned long long)row->number, to);
        break;
    }
}

static const char *const kind_text[] = {
    [TK_WAITS_EVENT] = "waits for an event",
    [TK_WAITS_SOURCE] = "waits for the source of a transfer to be free",
    [TK_WAITS_SEND] = "waits to send a message",
    [TK_WAITS_RMA] = "waits to post a transfer",
    [TK_WAITS_CONDITION] = "waits for a condition of the program (GASNET_BLOCKUNTIL)",
    [TK_WAITS_LAUNCHER] = "waits for all others, through the launcher (start, or end of the job)",
    [TK_WAITS_LOCK] = "waits for a lock (gex_HSL_t)"};

static const char *words_of(uint32_t kind)
{
    bool is_known = kind < sizeof(kind_text) / sizeof(*kind_text) && kind_text[kind];
    return is_known ? kind_text[kind] : "waits";
}

static void add_lock(struct explain *e, const struct waits_rank *w, const struct tk_wait_thread *t)
{
    const struct tk_wait_thread *holder = NULL;
    add(e, " at 0x%llx", (unsigned long long)t->why.number);
    for (unsigned i = 0; i < tk_wait_threads; i++)
        if (w->page.threads[i].tid == t->why.more && t->why.more)
            holder = &w->page.threads[i];
    if (t->why.more)
        add(e, ", which thread %llu of the same process holds", (unsigned long long)t->why.more);
    if (holder && holder->why.kind != TK_WAITS_NOT)
        add(e, "; that one %s", words_of(holder->why.kind));
}

static bool are_alike(const struct explain_edge *a, const struct explain_edge *b)
{
    return a->row && b->row && a->row->reason == b->row->reason &&
           a->row->number == b->row->number &&
           (a->row->reason == TK_REASON_BARRIER || a->row->reason == TK_REASON_NAMED);
}

/* For several ranks that have not entered one barrier. */
static size_t add_barrier(struct explain *e, size_t first)
{
    const struct tk_wait_row *row = e->edges[first].row;
    uint32_t missing[64], count = 0, more = 0;
    size_t i = first;
    for (; i < e->edge_count && e->edges[i].from == e->edges[first].from &&
           are_alike(&e->edges[first], &e->edges[i]);
         i++)
        if (count < sizeof(missing) / sizeof(*missing))
            missing[count++] = e->edges[i].to;
        else
            more++;
    add(e, "in %s %llu: ", row->reason == TK_REASON_NAMED ? "named barrier" : "barrier",
        (unsigned long long)row->number);
    add_ranks(e, missing, count);
    if (more)
        add(e, " (and %u more)", more);
    add(e, count == 1 ? " has not entered it" : " have not entered it");
    return i;
}

static void add_edges(struct explain *e, uint32_t r)
{
    unsigned shown = 0;
    for (size_t i = 0; i < e->edge_count;) {
        const struct explain_edge *edge = &e->edges[i];
        if (edge->from != r || shown == ranks_named) {
            i++;
            continue;
        }
        add(e, shown++ ? "; and " : ", ");
        if (edge->row && is_missing(e, edge->to, edge->row) &&
            edge->row->reason != TK_REASON_COLLECTIVE) {
            i = add_barrier(e, i);
            continue;
        }
        add_reason(e, edge);
        i++;
    }
}

static void add_waiting(struct explain *e, uint32_t r)
{
    const struct waits_rank *w = e->rank[r];
    const struct tk_wait_thread *t = waiter_of(w);
    add(e, "%s", words_of(t->why.kind));
    if (t->why.kind == TK_WAITS_LOCK)
        add_lock(e, w, t);
    add_edges(e, r);
}

static void add_state(struct explain *e, uint32_t r)
{
    const struct waits_rank *w = e->rank[r];
    double since = w ? seconds(w->now, last_polled(w)) : 0;
    switch ((enum state)e->state[r]) {
    case UNKNOWN:
        add(e, "is not known: %s", w ? w->why : "the guard of its host has not answered");
        break;
    case GONE:
        add(e, "is gone: its process has ended");
        break;
    case LEFT:
        add(e, "has left the job in order");
        break;
    case STOPPED:
        add(e, "is stopped (SIGSTOP or a debugger) and does nothing until it is continued");
        if (w->has_record)
            add(e, "; last polled %.1f s ago", since);
        break;
    case WAITING:
        add_waiting(e, r);
        break;
    case IN_HANDLER:
        add(e, "runs a handler that has not returned, and has not polled for %.1f s", since);
        break;
    case BLOCKED:
        add(e,
            "has not polled for %.1f s: something that a wait of the library has called does "
            "not return",
            since);
        break;
    case OUTSIDE:
        add(e, "waits for nothing of the library; last waited there %.1f s ago, and now is %s",
            since, w->doing);
        break;
    }
}

static bool is_age_shown(const struct explain *e, uint32_t r)
{
    return e->state[r] == WAITING;
}

/* Every sentence begins with one of these. */
static void add_verb(struct explain *e, const struct bytes *text, bool is_plural)
{
    static const char *const verbs[][2] = {
        {"waits ", "wait "}, {"is ", "are "}, {"has ", "have "}, {"runs ", "run "}};
    const uint8_t *at = bytes_front(text);
    size_t length = text->length;
    for (size_t i = 0; is_plural && i < sizeof(verbs) / sizeof(*verbs); i++) {
        size_t n = strlen(verbs[i][0]);
        if (length < n || memcmp(at, verbs[i][0], n) != 0)
            continue;
        bytes_append(&e->text, verbs[i][1], strlen(verbs[i][1]));
        at += n;
        length -= n;
        break;
    }
    bytes_append(&e->text, at, length);
}

/* Ranks with the same text share one line. */
static void add_lines(struct explain *e)
{
    struct explain part = *e;
    bool *is_shown = calloc(e->ranks, sizeof(*is_shown));
    uint32_t *same = calloc(e->ranks, sizeof(*same));
    struct bytes *texts = calloc(e->ranks, sizeof(*texts));
    for (uint32_t r = 0; texts && r < e->ranks; r++) {
        part.text = (struct bytes){0};
        add_state(&part, r);
        texts[r] = part.text;
    }
    for (uint32_t r = 0; is_shown && same && texts && r < e->ranks; r++) {
        uint32_t count = 0;
        double longest = 0;
        for (uint32_t other = r; other < e->ranks; other++)
            if (!is_shown[other] && texts[other].length == texts[r].length &&
                memcmp(bytes_front(&texts[other]), bytes_front(&texts[r]), texts[r].length) == 0) {
                is_shown[other] = true;
                same[count++] = other;
                if (is_age_shown(e, other)) {
                    const struct waits_rank *w = e->rank[other];
                    double age = seconds(w->now, waiter_of(w)->since);
                    longest = age > longest ? age : longest;
                }
            }
        if (!count)
            continue;
        add(e, "  ");
        add_ranks(e, same, count);
        add(e, " ");
        add_verb(e, &texts[r], count > 1);
        if (is_age_shown(e, r))
            add(e, " (%s%.1f s)", count > 1 ? "up to " : "for ", longest);
        add(e, "\n");
    }
    for (uint32_t r = 0; texts && r < e->ranks; r++)
        bytes_free(&texts[r]);
    free(is_shown);
    free(same);
    free(texts);
}

/* ---- the end of the chain */

static void suspect(struct explain *e, uint32_t r)
{
    for (uint32_t i = 0; i < e->suspect_count; i++)
        if (e->suspects[i] == r)
            return;
    if (e->suspect_count < sizeof(e->suspects) / sizeof(*e->suspects))
        e->suspects[e->suspect_count++] = r;
}

static uint32_t first_edge(const struct explain *e, uint32_t from)
{
    for (size_t i = 0; i < e->edge_count; i++)
        if (e->edges[i].from == from)
            return e->edges[i].to;
    return tk_wait_nobody;
}

/* Marks the ranks that are reached from `r`; returns whether any of them does not wait. */
static bool reaches_end(const struct explain *e, uint32_t r, bool *seen)
{
    bool any = e->state[r] != WAITING;
    seen[r] = true;
    for (bool more = true; more && !any;) {
        more = false;
        for (size_t i = 0; i < e->edge_count; i++)
            if (seen[e->edges[i].from] && !seen[e->edges[i].to]) {
                seen[e->edges[i].to] = more = true;
                any |= e->state[e->edges[i].to] != WAITING;
            }
    }
    return any;
}

/* path[]: for each rank, 1 + the rank at which the walk that reached it began. */
static void add_circle(struct explain *e, uint32_t r, uint32_t *path)
{
    uint32_t at = r;
    for (; at != tk_wait_nobody && !path[at]; at = first_edge(e, at))
        path[at] = r + 1;
    if (at == tk_wait_nobody || path[at] != r + 1)
        return;
    add(e, "  circle: rank %u", at);
    suspect(e, at);
    for (uint32_t next = first_edge(e, at); next != at; next = first_edge(e, next)) {
        add(e, " waits for rank %u, which", next);
        suspect(e, next);
    }
    add(e, " waits for rank %u\n", at);
}

/* The cause is a cycle without an exit; if there is none, the ranks at the ends of the chains. / */
static void find_causes(struct explain *e)
{
    bool *seen = calloc(e->ranks, sizeof(*seen));
    uint32_t *path = calloc(e->ranks, sizeof(*path));
    for (uint32_t r = 0; seen && path && r < e->ranks; r++) {
        if (e->state[r] != WAITING || first_edge(e, r) == tk_wait_nobody || path[r])
            continue;
        memset(seen, 0, e->ranks * sizeof(*seen));
        if (!reaches_end(e, r, seen))
            add_circle(e, r, path);
    }
    free(seen);
    free(path);
    for (size_t i = 0; i < e->edge_count; i++)
        if (e->state[e->edges[i].to] != WAITING || first_edge(e, e->edges[i].to) == tk_wait_nobody)
            suspect(e, e->edges[i].to);
    for (uint32_t r = 0; r < e->ranks && e->waiting; r++)
        if (e->state[r] == IN_HANDLER || e->state[r] == BLOCKED || e->state[r] == STOPPED)
            suspect(e, r);
    for (uint32_t r = 0; r < e->ranks && e->waiting; r++)
        if (e->state[r] == OUTSIDE ||
            (e->state[r] == WAITING && waiter_of(e->rank[r])->why.kind == TK_WAITS_LOCK))
            suspect(e, r);
}

void explain_join(struct explain *e)
{
    for (uint32_t r = 0; r < e->ranks; r++) {
        e->state[r] = state_of(e->rank[r]);
        if (e->state[r] != WAITING)
            continue;
        e->waiting++;
        uint64_t since = waiter_of(e->rank[r])->since, age = e->rank[r]->now - since;
        if (since <= e->rank[r]->now && age > e->longest) {
            e->longest = age;
            e->longest_since = since;
        }
    }
    for (uint32_t r = 0; r < e->ranks; r++)
        if (e->state[r] == WAITING)
            connect_rank(e, r);
    add_lines(e);
    find_causes(e);
    if (!e->waiting)
        add(e, "  no rank waits in the library\n");
}

/* ---- stacks */

/* Threads of the library, of libpmix and of softhca wait for ever in a healthy process too. */
static bool is_own_thread(const struct bytes *stack)
{
    static const char *const marks[] = {"wait_for_death", "event_base_loop", "softhca"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (memmem(bytes_front(stack), stack->length, marks[i], strlen(marks[i])))
            return true;
    return false;
}

static void end_thread(struct explain *e, struct bytes *stack, const char *name, size_t length)
{
    if (stack->length && !is_own_thread(stack) && !memmem(name, length, "softhca", 7)) {
        add(e, "    ");
        bytes_append(&e->text, bytes_front(stack), stack->length);
        add(e, "\n");
    }
    bytes_consume(stack, stack->length);
}

/* "#1  0x00007f.. in f (...) at path/file.c:12" becomes " < f (file.c:12)". */
static void add_frame(struct bytes *stack, const char *line, size_t length)
{
    char text[512], function[200] = "??", place[120] = "";
    snprintf(text, sizeof(text), "%.*s", (int)(length < 500 ? length : 500), line);
    const char *at = text + strcspn(text, " ");
    at += strspn(at, " ");
    if (!strncmp(at, "0x", 2)) {
        const char *in = strstr(at, " in ");
        at = in ? in + 4 : at;
    }
    snprintf(function, sizeof(function), "%.*s", (int)strcspn(at, " ("), at);
    const char *file = strstr(at, ") at ");
    if (file) {
        const char *slash = strrchr(file, '/');
        snprintf(place, sizeof(place), " (%.100s)", slash ? slash + 1 : file + 5);
    }
    if (stack->length)
        bytes_append(stack, " < ", 3);
    bytes_append(stack, function, strlen(function));
    bytes_append(stack, place, strlen(place));
}

void explain_add_stack(struct explain *e, uint32_t rank, const char *text, size_t length)
{
    struct bytes stack = {0};
    const char *name = text;
    size_t name_length = 0, before;
    add(e, "  stack of rank %u:\n", rank);
    before = e->text.length;
    for (const char *at = text, *end = text + length; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        if (n > 7 && !strncmp(at, "Thread ", 7)) {
            end_thread(e, &stack, name, name_length);
            name = at;
            name_length = n;
        } else if (n > 1 && at[0] == '#') {
            add_frame(&stack, at, n);
        }
        at += n + 1;
    }
    end_thread(e, &stack, name, name_length);
    bytes_free(&stack);
    if (e->text.length == before)
        add(e, "    can't be read: %.*s\n", length < 300 ? (int)length : 300,
            length ? text : "gdb printed nothing");
}
