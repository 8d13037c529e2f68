/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See summary.h. A thread writes its calls in the order in which they end, so calls nested in
 * another precede it, after those that ended before it began. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/trace/summary.h"

enum { recent_max = 1024 };

/* Completed calls that may turn out to be nested in another call. */
struct recent {
    size_t count;
    struct {
        uint64_t begin, ns;
    } calls[recent_max];
};

bool trace_is_wait(enum tk_trace_op op)
{
    return strchr("SBC", trace_op_letter(op)) != NULL;
}

/* Replaces characters that a terminal might interpret or that would break the line. */
static void copy_word(char *to, struct trace_word word)
{
    size_t length = word.length < trace_word_max ? word.length : trace_word_max - 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)word.at[i];
        to[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    to[length] = '\0';
}

static void add_to(struct trace_sum *sum, const struct trace_item *item, uint64_t own)
{
    sum->calls++;
    sum->ns += item->ns;
    sum->own += own;
    sum->bytes += item->bytes;
    if (item->ns > sum->max)
        sum->max = item->ns;
}

static void *more_of(struct trace_entry *entry, size_t size)
{
    if (entry && !entry->more)
        entry->more = calloc(1, size);
    return entry ? entry->more : NULL;
}

/* Merges the older half in pairs: a call with more nested calls than fit loses the time of one such
 * pair at most. */
static void make_room(struct recent *recent)
{
    for (size_t i = 0; i < recent_max / 4; i++) {
        recent->calls[i].begin = recent->calls[2 * i].begin;
        recent->calls[i].ns = recent->calls[2 * i].ns + recent->calls[2 * i + 1].ns;
    }
    memmove(&recent->calls[recent_max / 4], &recent->calls[recent_max / 2],
            recent_max / 2 * sizeof(recent->calls[0]));
    recent->count -= recent_max / 4;
}

static uint64_t own_time(struct recent *recent, const struct trace_item *item)
{
    uint64_t inside = 0;
    while (recent->count > 0 && recent->calls[recent->count - 1].begin >= item->begin)
        inside += recent->calls[--recent->count].ns;
    if (recent->count == recent_max)
        make_room(recent);
    recent->calls[recent->count].begin = item->begin;
    recent->calls[recent->count++].ns = item->ns;
    return item->ns > inside ? item->ns - inside : 0;
}

static struct trace_entry *rank_entry(struct trace_summary *summary, uint32_t rank)
{
    struct trace_entry *entry = trace_table_entry(&summary->ranks, rank, 0, "", 0);
    return more_of(entry, sizeof(struct trace_rank)) ? entry : NULL;
}

static void add_to_operation(struct trace_operation *operation, const struct trace_item *item,
                             uint64_t own)
{
    if (operation->sum.calls == 0 || item->ns > operation->sum.max) {
        operation->rank = item->rank;
        operation->thread = item->thread;
        operation->begin = item->begin;
        copy_word(operation->place, item->place);
    }
    add_to(&operation->sum, item, own);
}

static void add_to_rank(struct trace_entry *entry, const struct trace_item *item, uint64_t own)
{
    struct trace_rank *rank = entry->more;
    if (entry->sum.calls == 0 || item->begin < rank->begin)
        rank->begin = item->begin;
    if (item->begin + item->ns > rank->end)
        rank->end = item->begin + item->ns;
    if (trace_is_wait(item->op))
        rank->waits += own;
    if (tk_trace_is_handler(item->op))
        rank->handlers += own;
    add_to(&entry->sum, item, own);
}

/* Operations that a rank starts towards another; a handler is the other end of one that the other
 * rank started. */
static bool add_to_pair(struct trace_summary *summary, const struct trace_item *item, uint64_t own)
{
    if (item->peer == tk_trace_no_peer || tk_trace_is_handler(item->op) ||
        trace_is_wait(item->op) || tk_trace_is_beside(item->op))
        return true;
    struct trace_entry *entry = trace_table_entry(&summary->pairs, item->rank, item->peer, "", 0);
    if (entry)
        add_to(&entry->sum, item, own);
    return entry != NULL;
}

/* By operation and a word, if the item has it. */
static bool add_to_words(struct trace_table *table, const struct trace_item *item,
                         struct trace_word word, uint64_t own)
{
    if (word.length == 0)
        return true;
    char name[trace_word_max];
    copy_word(name, word);
    struct trace_entry *entry = trace_table_entry(table, item->op, 0, name, strlen(name));
    if (entry)
        add_to(&entry->sum, item, own);
    return entry != NULL;
}

enum trace_rail_class trace_rail_class_of(enum tk_trace_op op)
{
    switch (trace_op_letter(op)) {
    case 'P':
        return TRACE_RAIL_PUT;
    case 'G':
        return TRACE_RAIL_GET;
    case 'A':
        return TRACE_RAIL_MESSAGE;
    default:
        return TRACE_RAIL_OTHER;
    }
}

static void add_to_rails(struct trace_summary *summary, const struct trace_item *item)
{
    struct trace_rail parts[trace_rails_max];
    unsigned count = trace_rails_of(item, parts);
    for (unsigned i = 0; i < count; i++) {
        struct trace_rail_sum *rail = &summary->rails[parts[i].rail];
        if (item->op == tk_trace_connect) {
            rail->connections++;
            continue;
        }
        rail->calls++;
        rail->bytes[trace_rail_class_of(item->op)] += parts[i].bytes;
    }
}

static bool add_event(struct trace_summary *summary, const struct trace_item *item)
{
    struct trace_entry *rank = rank_entry(summary, item->rank);
    if (!rank)
        return false;
    if (item->op == tk_trace_lost) {
        ((struct trace_rank *)rank->more)->lost += item->bytes;
        summary->lost += item->bytes;
        return true;
    }
    struct recent *recent = more_of(
        trace_table_entry(&summary->threads, item->rank, item->thread, "", 0), sizeof(*recent));
    if (!recent)
        return false;
    uint64_t own = tk_trace_is_beside(item->op) ? 0 : own_time(recent, item);
    summary->events++;
    add_to_operation(&summary->operations[item->op], item, own);
    add_to_rank(rank, item, own);
    if (tk_trace_is_moment(item->op))
        return true;
    add_to_rails(summary, item);
    return add_to_pair(summary, item, own) &&
           add_to_words(&summary->lines, item, item->place, own) &&
           add_to_words(&summary->paths, item, item->path, own);
}

bool trace_summary_add(struct trace_summary *summary, enum trace_kind kind,
                       const struct trace_item *item)
{
    if (kind == TRACE_EVENT)
        return add_event(summary, item);
    if (kind != TRACE_START && kind != TRACE_END)
        return true;
    struct trace_entry *entry = rank_entry(summary, item->rank);
    if (!entry)
        return false;
    struct trace_rank *rank = entry->more;
    if (item->is_aligned) {
        rank->is_aligned = true;
        rank->error = item->error;
    }
    if (kind == TRACE_START) {
        rank->starts++;
        copy_word(rank->host, item->host);
        if (item->size > summary->size)
            summary->size = item->size;
    } else {
        copy_word(rank->how, item->how);
    }
    return true;
}

void trace_summary_next_file(struct trace_summary *summary)
{
    summary->files++;
    for (size_t i = 0; i < summary->threads.count; i++)
        if (summary->threads.entries[i].more)
            ((struct recent *)summary->threads.entries[i].more)->count = 0;
}

void trace_summary_free(struct trace_summary *summary)
{
    trace_table_free(&summary->ranks);
    trace_table_free(&summary->threads);
    trace_table_free(&summary->pairs);
    trace_table_free(&summary->lines);
    trace_table_free(&summary->paths);
}
