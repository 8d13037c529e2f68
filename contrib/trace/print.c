/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See print.h. Columns are numbers without units, the units stand above them, so that sort(1) and
 * awk(1) can go on with a table. No state. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/trace/print.h"

static double in_ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double in_us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static double mean_us(const struct trace_sum *sum)
{
    return sum->calls ? in_us(sum->ns) / (double)sum->calls : 0;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Sorted by time, longest first; ties have a fixed order. */
static int compare_entries(const void *left, const void *right)
{
    const struct trace_entry *a = *(const struct trace_entry *const *)left;
    const struct trace_entry *b = *(const struct trace_entry *const *)right;
    int order = compare_numbers(b->sum.ns, a->sum.ns);
    if (!order)
        order = strcmp(a->name, b->name);
    if (!order)
        order = compare_numbers(a->first, b->first);
    return order ? order : compare_numbers(a->second, b->second);
}

/* Freed by the caller. */
static const struct trace_entry **sorted(const struct trace_table *table)
{
    const struct trace_entry **list = malloc((table->count + 1) * sizeof(*list));
    if (!list)
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        list[i] = &table->entries[i];
    qsort(list, table->count, sizeof(*list), compare_entries);
    return list;
}

static size_t shown(const struct trace_table *table, size_t top)
{
    return top && top < table->count ? top : table->count;
}

static void print_rest(const struct trace_table *table, size_t top)
{
    if (shown(table, top) < table->count)
        printf("  and %zu more (--top)\n", table->count - shown(table, top));
}

/* Of traces of several hosts, whether their times can be compared. */
static void print_clocks(const struct trace_summary *summary)
{
    const char *host = NULL;
    bool is_aligned = true, has_others = false;
    uint64_t error = 0;
    for (size_t i = 0; i < summary->ranks.count; i++) {
        const struct trace_rank *rank = summary->ranks.entries[i].more;
        has_others = has_others || (host && strcmp(host, rank->host) != 0);
        host = rank->host;
        is_aligned = is_aligned && rank->is_aligned;
        error = rank->error > error ? rank->error : error;
    }
    if (has_others && is_aligned)
        printf("clocks of all hosts are aligned to that of rank 0, with errors of up to %.3f us\n",
               in_us(error));
    else if (has_others)
        printf("times of ranks on several hosts are those of each host's own clock\n");
}

static void print_head(const struct trace_summary *summary)
{
    unsigned starts = 0;
    for (size_t i = 0; i < summary->ranks.count; i++) {
        const struct trace_rank *rank = summary->ranks.entries[i].more;
        starts = rank->starts > starts ? rank->starts : starts;
    }
    printf("%u file%s, %zu rank%s", summary->files, summary->files == 1 ? "" : "s",
           summary->ranks.count, summary->ranks.count == 1 ? "" : "s");
    if (summary->size)
        printf(" of %" PRIu32, summary->size);
    printf(", %zu thread%s, %" PRIu64 " events, %" PRIu64 " lost\n", summary->threads.count,
           summary->threads.count == 1 ? "" : "s", summary->events, summary->lost);
    print_clocks(summary);
    if (starts > 1)
        printf("a rank starts %u times: these are traces of several jobs, added up\n", starts);
    if (summary->cut)
        printf("%" PRIu64 " file%s within a line, which is left out\n", summary->cut,
               summary->cut == 1 ? " ends" : "s end");
}

static int compare_operations(const void *left, const void *right)
{
    const struct trace_operation *a = *(const struct trace_operation *const *)left;
    const struct trace_operation *b = *(const struct trace_operation *const *)right;
    int order = compare_numbers(b->sum.ns, a->sum.ns);
    return order ? order : (a > b) - (a < b);
}

static void print_operation(const char *name, char letter, const struct trace_sum *sum)
{
    printf("  %-16s %c %12" PRIu64 " %14.3f %14.3f %12.3f %14.3f %16" PRIu64 "\n", name, letter,
           sum->calls, in_ms(sum->ns), in_ms(sum->own), mean_us(sum), in_us(sum->max), sum->bytes);
}

static void print_wait(const char *name, const struct trace_operation *o)
{
    printf("  %-16s %12" PRIu64 " %14.3f %14.3f %12.3f %14.3f  rank %" PRIu32 " thread %" PRIu32
           " at %.9f%s%s\n",
           name, o->sum.calls, in_ms(o->sum.ns), in_ms(o->sum.own), mean_us(&o->sum),
           in_us(o->sum.max), o->rank, o->thread, (double)o->begin / 1e9, o->place[0] ? ", " : "",
           o->place);
}

static void print_operations(const struct trace_summary *summary)
{
    const struct trace_operation *list[tk_trace_ops];
    size_t count = 0;
    for (unsigned i = 0; i < tk_trace_ops; i++)
        if (summary->operations[i].sum.calls)
            list[count++] = &summary->operations[i];
    qsort(list, count, sizeof(list[0]), compare_operations);
    printf("\nOperations (own: without calls inside of these)\n"
           "  %-16s %c %12s %14s %14s %12s %14s %16s\n",
           "operation", 'L', "calls", "total ms", "own ms", "mean us", "max us", "bytes");
    for (size_t i = 0; i < count; i++) {
        enum tk_trace_op op = (enum tk_trace_op)(list[i] - summary->operations);
        print_operation(trace_op_name(op), trace_op_letter(op), &list[i]->sum);
    }
    printf("\nWaits: for events, barriers and collectives\n"
           "  %-16s %12s %14s %14s %12s %14s  %s\n",
           "operation", "calls", "total ms", "own ms", "mean us", "max us",
           "the longest (seconds of the clock)");
    for (size_t i = 0; i < count; i++) {
        enum tk_trace_op op = (enum tk_trace_op)(list[i] - summary->operations);
        if (trace_is_wait(op))
            print_wait(trace_op_name(op), list[i]);
    }
}

static void print_rank(const struct trace_entry *entry)
{
    const struct trace_rank *rank = entry->more;
    printf("  %6" PRIu64 " %12" PRIu64 " %14.3f %14.3f %14.3f %14.3f %10" PRIu64 "  %-12s %s\n",
           entry->first, entry->sum.calls, in_ms(rank->end - rank->begin), in_ms(entry->sum.own),
           in_ms(rank->waits), in_ms(rank->handlers), rank->lost, rank->how[0] ? rank->how : "none",
           rank->host);
}

static bool print_ranks(const struct trace_summary *summary, size_t top)
{
    const struct trace_entry **list = sorted(&summary->ranks);
    if (!list)
        return false;
    printf("\nRanks (span: from the first event to the end of the last; times are summed over "
           "threads)\n"
           "  %6s %12s %14s %14s %14s %14s %10s  %-12s %s\n",
           "rank", "events", "span ms", "in calls ms", "waits ms", "handlers ms", "lost", "end",
           "host");
    for (size_t i = 0; i < shown(&summary->ranks, top); i++)
        print_rank(list[i]);
    print_rest(&summary->ranks, top);
    free(list);
    return true;
}

static bool print_pairs(const struct trace_summary *summary, size_t top)
{
    const struct trace_entry **list = sorted(&summary->pairs);
    if (!list)
        return false;
    printf("\nPeers: what ranks put to, got from and sent to others\n"
           "  %6s %6s %12s %16s %14s %12s %14s\n",
           "rank", "peer", "calls", "bytes", "total ms", "mean us", "max us");
    for (size_t i = 0; i < shown(&summary->pairs, top); i++)
        printf("  %6" PRIu64 " %6" PRIu64 " %12" PRIu64 " %16" PRIu64 " %14.3f %12.3f %14.3f\n",
               list[i]->first, list[i]->second, list[i]->sum.calls, list[i]->sum.bytes,
               in_ms(list[i]->sum.ns), mean_us(&list[i]->sum), in_us(list[i]->sum.max));
    print_rest(&summary->pairs, top);
    free(list);
    return true;
}

/* Of a table by operation and a word, which is called `last`. */
static bool print_words(const struct trace_table *table, size_t top, const char *last)
{
    const struct trace_entry **list = sorted(table);
    if (!list)
        return false;
    printf("  %12s %14s %14s %12s %14s %16s  %-16s %s\n", "calls", "total ms", "own ms", "mean us",
           "max us", "bytes", "operation", last);
    for (size_t i = 0; i < shown(table, top); i++)
        printf("  %12" PRIu64 " %14.3f %14.3f %12.3f %14.3f %16" PRIu64 "  %-16s %s\n",
               list[i]->sum.calls, in_ms(list[i]->sum.ns), in_ms(list[i]->sum.own),
               mean_us(&list[i]->sum), in_us(list[i]->sum.max), list[i]->sum.bytes,
               trace_op_name((enum tk_trace_op)list[i]->first), list[i]->name);
    print_rest(table, top);
    free(list);
    return true;
}

static bool print_paths(const struct trace_summary *summary)
{
    printf("\nPaths of transfers and messages, and what was registered\n");
    return print_words(&summary->paths, 0, "path");
}

/* Only if a rail is in the files: traces of earlier releases have none. */
static void print_rails(const struct trace_summary *summary)
{
    bool has_any = false;
    for (unsigned i = 0; i < trace_rails_max; i++) {
        const struct trace_rail_sum *rail = &summary->rails[i];
        const uint64_t *bytes = rail->bytes;
        if (!rail->calls && !rail->connections)
            continue;
        if (!has_any)
            printf("\nRails: what went over each (a striped call counts for each of its rails)\n"
                   "  %4s %12s %16s %16s %16s %16s %12s\n",
                   "rail", "calls", "bytes of puts", "of gets", "of messages", "of others",
                   "connections");
        has_any = true;
        printf("  %4u %12" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64
               " %12" PRIu64 "\n",
               i, rail->calls, bytes[TRACE_RAIL_PUT], bytes[TRACE_RAIL_GET],
               bytes[TRACE_RAIL_MESSAGE], bytes[TRACE_RAIL_OTHER], rail->connections);
    }
}

static bool print_lines(const struct trace_summary *summary, size_t top)
{
    printf("\nLines of source\n");
    bool is_done = print_words(&summary->lines, top, "line");
    if (summary->lines.count == 0)
        printf("  none: the program gives no lines (GASNETT_TRACE_SETSOURCELINE)\n");
    return is_done;
}

bool trace_print(const struct trace_summary *summary, size_t top)
{
    print_head(summary);
    print_operations(summary);
    if (!print_ranks(summary, top) || !print_pairs(summary, top) || !print_paths(summary))
        return false;
    print_rails(summary);
    return print_lines(summary, top);
}
