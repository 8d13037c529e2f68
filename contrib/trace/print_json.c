/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See print.h: the sums as one object of JSON, for programs. Times are nanoseconds; lists are
 * whole, in the order in which they came. Bytes that are not ASCII are escaped one by one, as in
 * traces. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "contrib/trace/print.h"

static void print_string(const char *name, const char *text)
{
    printf("\"%s\":\"", name);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c >= 0x7f)
            printf("\\u%04x", c);
        else
            printf(c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    putchar('"');
}

static void print_sum(const struct trace_sum *sum)
{
    printf(",\"calls\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"own_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64
           ",\"bytes\":%" PRIu64 "}",
           sum->calls, sum->ns, sum->own, sum->max, sum->bytes);
}

static void print_operations(const struct trace_summary *summary)
{
    const char *before = "";
    printf(",\n\"operations\":[");
    for (unsigned i = 0; i < tk_trace_ops; i++) {
        const struct trace_sum *sum = &summary->operations[i].sum;
        if (sum->calls == 0)
            continue;
        printf("%s\n{\"operation\":\"%s\",\"class\":\"%c\"", before,
               trace_op_name((enum tk_trace_op)i), trace_op_letter((enum tk_trace_op)i));
        print_sum(sum);
        before = ",";
    }
    putchar(']');
}

static void print_ranks(const struct trace_table *table)
{
    printf(",\n\"ranks\":[");
    for (size_t i = 0; i < table->count; i++) {
        const struct trace_rank *rank = table->entries[i].more;
        printf("%s\n{\"rank\":%" PRIu64 ",\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
               ",\"wait_ns\":%" PRIu64 ",\"handler_ns\":%" PRIu64 ",\"lost\":%" PRIu64 ",",
               i ? "," : "", table->entries[i].first, rank->begin, rank->end, rank->waits,
               rank->handlers, rank->lost);
        print_string("end", rank->how);
        putchar(',');
        print_string("host", rank->host);
        print_sum(&table->entries[i].sum);
    }
    putchar(']');
}

static void print_pairs(const struct trace_table *table)
{
    printf(",\n\"peers\":[");
    for (size_t i = 0; i < table->count; i++) {
        printf("%s\n{\"rank\":%" PRIu64 ",\"peer\":%" PRIu64, i ? "," : "", table->entries[i].first,
               table->entries[i].second);
        print_sum(&table->entries[i].sum);
    }
    putchar(']');
}

/* Of a table by operation and a word. */
static void print_words(const struct trace_table *table, const char *list, const char *word)
{
    printf(",\n\"%s\":[", list);
    for (size_t i = 0; i < table->count; i++) {
        printf("%s\n{\"operation\":\"%s\",", i ? "," : "",
               trace_op_name((enum tk_trace_op)table->entries[i].first));
        print_string(word, table->entries[i].name);
        print_sum(&table->entries[i].sum);
    }
    putchar(']');
}

static void print_rails(const struct trace_rail_sum rails[trace_rails_max])
{
    const char *before = "";
    printf(",\n\"rails\":[");
    for (unsigned i = 0; i < trace_rails_max; i++) {
        const uint64_t *bytes = rails[i].bytes;
        if (!rails[i].calls && !rails[i].connections)
            continue;
        printf("%s\n{\"rail\":%u,\"calls\":%" PRIu64 ",\"put_bytes\":%" PRIu64
               ",\"get_bytes\":%" PRIu64 ",\"message_bytes\":%" PRIu64 ",\"other_bytes\":%" PRIu64
               ",\"connections\":%" PRIu64 "}",
               before, i, rails[i].calls, bytes[TRACE_RAIL_PUT], bytes[TRACE_RAIL_GET],
               bytes[TRACE_RAIL_MESSAGE], bytes[TRACE_RAIL_OTHER], rails[i].connections);
        before = ",";
    }
    putchar(']');
}

void trace_print_json(const struct trace_summary *summary)
{
    printf("{\"files\":%u,\"size\":%" PRIu32 ",\"threads\":%zu,\"events\":%" PRIu64
           ",\"lost\":%" PRIu64 ",\"cut\":%" PRIu64,
           summary->files, summary->size, summary->threads.count, summary->events, summary->lost,
           summary->cut);
    print_operations(summary);
    print_ranks(&summary->ranks);
    print_pairs(&summary->pairs);
    print_words(&summary->paths, "paths", "path");
    print_rails(summary->rails);
    print_words(&summary->lines, "lines", "line");
    printf("}\n");
}
