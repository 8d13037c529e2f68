/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See read.h: statistics for programs, as conduit/stats/format.c writes them, and records of
 * gasnetrun_ibv --top --json (spawner/run/top_table.c). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/report/read.h"

/* The counters come in the order of the table, so the search begins behind the last one. */
static const struct tk_stats_row *row_of(struct trace_word id, unsigned *from)
{
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        unsigned at = (*from + i) % tk_stats_row_count;
        if (trace_word_is(id, tk_stats_rows[at].id)) {
            *from = at + 1;
            return &tk_stats_rows[at];
        }
    }
    return NULL;
}

/* Names of later releases are skipped. */
static bool read_counters(const struct json_tree *tree, const struct json_node *counters,
                          uint64_t *values)
{
    unsigned from = 0;
    for (const struct json_node *n = json_first(tree, counters); n; n = json_next(tree, n)) {
        const struct tk_stats_row *row = row_of(n->key, &from);
        uint64_t value;
        if (n->type != JSON_NUMBER || !trace_number(n->text, &value))
            return false;
        if (row)
            values[row - tk_stats_rows] = value;
    }
    return true;
}

static bool read_path_sizes(const struct json_tree *tree, const struct json_node *path,
                            uint64_t *sizes)
{
    for (const struct json_node *n = json_first(tree, path); n; n = json_next(tree, n)) {
        uint64_t least, count;
        if (!trace_number(n->key, &least) || least == 0 || n->type != JSON_NUMBER ||
            !trace_number(n->text, &count))
            return false;
        unsigned class = 63 - (unsigned)__builtin_clzll(least);
        if (class >= tk_size_classes)
            return false;
        sizes[class] = count;
    }
    return true;
}

static bool read_sizes(struct report_reader *reader, const struct json_node *sizes,
                       struct report_rank *rank)
{
    const struct json_tree *tree = &reader->tree;
    unsigned from = 0;
    for (const struct json_node *n = json_first(tree, sizes); n; n = json_next(tree, n)) {
        const struct tk_stats_row *row = row_of(n->key, &from);
        if (row && row->is_path && !read_path_sizes(tree, n, rank->sizes->paths[row->index]))
            return false;
    }
    return true;
}

/* "settings": those that differ from their defaults. */
static bool read_settings(struct report_reader *reader, const struct json_node *root)
{
    const struct json_tree *tree = &reader->tree;
    const struct json_node *settings = json_member(tree, root, "settings");
    if (!settings)
        return true;
    reader->model->has_settings = true;
    for (const struct json_node *n = json_first(tree, settings); n; n = json_next(tree, n))
        if (n->type == JSON_STRING && !report_setting_add(reader->model, n->key, n->text))
            return false;
    return true;
}

static void take_size(struct report_model *model, uint32_t size)
{
    model->size = size > model->size ? size : model->size;
}

static enum read_status read_rank(struct report_reader *reader, const struct json_node *root,
                                  uint32_t number, uint32_t size)
{
    const struct json_tree *tree = &reader->tree;
    const struct json_node *counters = json_member(tree, root, "counters");
    uint64_t micros;
    if (!counters || !json_micros(tree, root, "seconds", &micros))
        return READ_FOREIGN;
    if (number >= report_ranks_max || size > report_ranks_max)
        return READ_RANGE;
    struct report_rank *rank = report_rank(reader->model, number);
    if (!rank || !report_rank_counters(rank, true))
        return READ_NO_MEMORY;
    rank->source = REPORT_STATS;
    rank->micros = micros;
    json_number32(tree, root, "pid", &rank->pid);
    report_word_copy(rank->host, sizeof(rank->host), json_text(tree, root, "host"));
    report_word_copy(rank->how, sizeof(rank->how), json_text(tree, root, "end"));
    take_size(reader->model, size);
    if (!read_counters(tree, counters, rank->counters) ||
        !read_sizes(reader, json_member(tree, root, "sizes"), rank))
        return READ_FOREIGN;
    return read_settings(reader, root) ? READ_GOOD : READ_NO_MEMORY;
}

enum read_status report_read_stats(struct report_reader *reader, const struct json_node *root)
{
    const struct json_tree *tree = &reader->tree;
    uint32_t rank, size;
    /* The summary repeats what the ranks say. */
    if (json_member(tree, root, "summary"))
        return json_member(tree, root, "counters") ? READ_GOOD : READ_FOREIGN;
    if (!json_number32(tree, root, "rank", &rank))
        return READ_FOREIGN;
    if (json_member(tree, root, "program"))
        return READ_GOOD;
    if (!json_number32(tree, root, "ranks", &size))
        return READ_FOREIGN;
    return read_rank(reader, root, rank, size);
}

/* ---- --top ---- */

static bool read_wait(const struct json_tree *tree, const struct json_node *node,
                      struct report_rank *rank)
{
    struct trace_word waits_for = json_text(tree, node, "waits_for");
    report_word_copy(rank->waits_for, sizeof(rank->waits_for), waits_for);
    rank->wait_micros = 0;
    rank->wait_peer = tk_trace_no_peer;
    json_number32(tree, node, "wait_peer", &rank->wait_peer);
    return waits_for.length == 0 || json_micros(tree, node, "wait_seconds", &rank->wait_micros);
}

static enum read_status read_top_counters(struct report_reader *reader,
                                          const struct json_node *node, struct report_rank *rank)
{
    const struct json_tree *tree = &reader->tree;
    const struct json_node *counters = json_member(tree, node, "counters");
    uint64_t values[tk_stats_rows_max] = {0}, micros;
    if (!counters)
        return READ_FOREIGN;
    if (counters->type == JSON_NULL) {
        report_word_copy(rank->why, sizeof(rank->why), json_text(tree, node, "why"));
        return READ_GOOD;
    }
    rank->why[0] = '\0';
    if (!json_micros(tree, node, "seconds", &micros) || !read_counters(tree, counters, values))
        return READ_FOREIGN;
    report_sample_rank(&reader->sample, rank, values, micros);
    if (rank->source == REPORT_STATS)
        return READ_GOOD;
    if (!report_rank_counters(rank, false))
        return READ_NO_MEMORY;
    rank->source = REPORT_TOP;
    rank->micros = micros;
    memcpy(rank->counters, values, sizeof(values));
    return READ_GOOD;
}

static enum read_status read_top_rank(struct report_reader *reader, const struct json_node *node)
{
    const struct json_tree *tree = &reader->tree;
    uint32_t number, pid;
    if (!json_number32(tree, node, "rank", &number))
        return READ_FOREIGN;
    if (number >= report_ranks_max)
        return READ_RANGE;
    struct report_rank *rank = report_rank(reader->model, number);
    if (!rank)
        return READ_NO_MEMORY;
    rank->was_seen = true;
    if (json_number32(tree, node, "pid", &pid) && pid != 0) /* 0: it has ended */
        rank->pid = pid;
    if (rank->source != REPORT_STATS)
        report_word_copy(rank->host, sizeof(rank->host), json_text(tree, node, "host"));
    report_word_copy(rank->state, sizeof(rank->state), json_text(tree, node, "state"));
    json_number32(tree, node, "rails", &rank->rails);
    json_number(tree, node, "memory_kb", &rank->memory_kb);
    if (!read_wait(tree, node, rank))
        return READ_FOREIGN;
    return read_top_counters(reader, node, rank);
}

enum read_status report_read_top(struct report_reader *reader, const struct json_node *root)
{
    const struct json_tree *tree = &reader->tree;
    const struct json_node *ranks = json_member(tree, root, "ranks");
    struct report_model *model = reader->model;
    uint32_t size;
    if (!ranks || ranks->type != JSON_ARRAY || !json_number32(tree, root, "size", &size))
        return READ_FOREIGN;
    if (size > report_ranks_max)
        return READ_RANGE;
    take_size(model, size);
    report_word_copy(model->program, sizeof(model->program), json_text(tree, root, "program"));
    json_number32(tree, root, "hosts", &model->hosts);
    json_number32(tree, root, "silent_hosts", &model->silent_hosts);
    reader->sample = (struct report_sample){0};
    for (const struct json_node *n = json_first(tree, ranks); n; n = json_next(tree, n)) {
        enum read_status status = read_top_rank(reader, n);
        if (status != READ_GOOD)
            return status;
    }
    report_sample_add(model, &reader->sample);
    return READ_GOOD;
}
