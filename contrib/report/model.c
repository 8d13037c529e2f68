/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See model.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/report/model.h"

struct report_model *report_model_new(void)
{
    struct report_model *model = calloc(1, sizeof(*model));
    if (model)
        model->sample_step = 1;
    return model;
}

void report_model_free(struct report_model *model)
{
    if (!model)
        return;
    for (uint32_t i = 0; i < model->rank_count; i++) {
        free(model->ranks[i].counters);
        free(model->ranks[i].sizes);
    }
    free(model->ranks);
    free(model->samples);
    free(model->settings);
    trace_summary_free(&model->trace);
    trace_table_free(&model->waits);
    trace_table_free(&model->calls);
    report_timeline_free(&model->timeline);
    free(model);
}

struct report_rank *report_rank(struct report_model *model, uint32_t rank)
{
    if (rank >= report_ranks_max)
        return NULL;
    if (rank >= model->rank_count) {
        uint32_t count = model->rank_count ? model->rank_count : 16;
        while (count <= rank)
            count *= 2;
        struct report_rank *ranks = realloc(model->ranks, count * sizeof(*ranks));
        if (!ranks)
            return NULL;
        memset(ranks + model->rank_count, 0, (count - model->rank_count) * sizeof(*ranks));
        for (uint32_t i = model->rank_count; i < count; i++)
            ranks[i].wait_peer = tk_trace_no_peer;
        model->ranks = ranks;
        model->rank_count = count;
    }
    model->ranks[rank].is_known = true;
    return &model->ranks[rank];
}

uint32_t report_size(const struct report_model *model)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < model->rank_count; i++)
        if (model->ranks[i].is_known)
            size = i + 1;
    return size > model->size ? size : model->size;
}

bool report_rank_counters(struct report_rank *rank, bool with_sizes)
{
    if (!rank->counters)
        rank->counters = malloc(tk_stats_rows_max * sizeof(*rank->counters));
    if (with_sizes && !rank->sizes)
        rank->sizes = malloc(sizeof(*rank->sizes));
    if (!rank->counters || (with_sizes && !rank->sizes))
        return false;
    memset(rank->counters, 0, tk_stats_rows_max * sizeof(*rank->counters));
    if (with_sizes)
        memset(rank->sizes, 0, sizeof(*rank->sizes));
    return true;
}

uint64_t report_counter(const struct report_rank *rank, const char *id)
{
    for (unsigned i = 0; rank->counters && i < tk_stats_row_count; i++)
        if (strcmp(tk_stats_rows[i].id, id) == 0)
            return rank->counters[i];
    return 0;
}

static bool is_named(const char *id, const char *name)
{
    size_t length = strlen(name);
    return name[length - 1] == '_' ? strncmp(id, name, length) == 0 : strcmp(id, name) == 0;
}

uint64_t report_sum(const uint64_t *counters, const char *const *names)
{
    uint64_t sum = 0;
    for (unsigned i = 0; counters && i < tk_stats_row_count; i++)
        for (const char *const *name = names; *name; name++)
            if (is_named(tk_stats_rows[i].id, *name))
                sum += counters[i];
    return sum;
}

/* ---- traces ---- */

static bool is_one_of(struct trace_word word, const char *const *words)
{
    for (; *words; words++)
        if (trace_word_is(word, *words))
            return true;
    return false;
}

static enum report_kind kind_of(const struct trace_item *item)
{
    if (tk_trace_is_send(item->op))
        return REPORT_MESSAGES;
    return strchr("PG", trace_op_letter(item->op)) ? REPORT_TRANSFERS : REPORT_OTHER;
}

static unsigned path_of(const struct trace_item *item)
{
    static const char *const shared[] = {"shared", "kernel", NULL};
    static const char *const self[] = {"self", NULL};
    if (item->rail != trace_no_rail)
        return REPORT_RAILS + (item->rail < report_rails_max ? item->rail : report_rails_max - 1);
    if (item->rails.length > 0)
        return REPORT_SEVERAL;
    if (is_one_of(item->path, self) || item->peer == item->rank)
        return REPORT_SELF;
    if (is_one_of(item->path, shared))
        return REPORT_SHARED;
    return kind_of(item) == REPORT_TRANSFERS ? REPORT_NETWORK : REPORT_UNKNOWN;
}

static void coarsen(struct report_matrix *m)
{
    for (unsigned layer = 0; layer < report_kinds * report_paths; layer++) {
        struct report_cell(*cells)[report_cells] =
            m->cells[layer / report_paths][layer % report_paths];
        for (unsigned from = 0; from < report_cells; from++)
            for (unsigned to = 0; to < report_cells; to++) {
                struct report_cell cell = cells[from][to];
                cells[from][to] = (struct report_cell){0, 0};
                cells[from / 2][to / 2].count += cell.count;
                cells[from / 2][to / 2].bytes += cell.bytes;
            }
    }
    m->shift++;
}

static void add_to_matrix(struct report_matrix *m, const struct trace_item *item)
{
    /* A transfer without a path was refused, or is empty. */
    bool is_transfer = strchr("PG", trace_op_letter(item->op)) != NULL;
    if (item->peer == tk_trace_no_peer || !strchr("PGARV", trace_op_letter(item->op)) ||
        tk_trace_is_handler(item->op) || (is_transfer && item->path.length == 0))
        return;
    while (item->rank >> m->shift >= report_cells || item->peer >> m->shift >= report_cells)
        coarsen(m);
    struct report_cell *cell =
        &m->cells[kind_of(item)][path_of(item)][item->rank >> m->shift][item->peer >> m->shift];
    cell->count++;
    cell->bytes += item->bytes;
    m->is_used = true;
}

static unsigned log2_of(uint64_t number)
{
    return number > 1 ? 63 - (unsigned)__builtin_clzll(number) : 0;
}

static bool add_to_calls(struct report_model *model, const struct trace_item *item)
{
    char path[report_word_max];
    report_word_copy(path, sizeof(path), item->path);
    struct trace_entry *entry = trace_table_entry(&model->calls, item->op, 0, path, strlen(path));
    if (!entry)
        return false;
    if (!entry->more)
        entry->more = calloc(1, sizeof(struct report_calls));
    struct report_calls *calls = entry->more;
    if (!calls)
        return false;
    unsigned size = log2_of(item->bytes);
    calls->times[log2_of(item->ns)]++;
    if (item->bytes)
        calls->bytes[size < tk_size_classes ? size : tk_size_classes - 1]++;
    entry->sum.calls++;
    entry->sum.ns += item->ns;
    entry->sum.bytes += item->bytes;
    return true;
}

static bool add_to_waits(struct report_model *model, const struct trace_item *item)
{
    if (item->op != tk_trace_credit_wait && item->op != tk_trace_room_wait)
        return true;
    const char *name = item->op == tk_trace_credit_wait ? "c" : "s";
    struct trace_entry *entry = trace_table_entry(&model->waits, item->rank, item->peer, name, 1);
    if (!entry)
        return false;
    entry->sum.calls++;
    entry->sum.ns += item->ns;
    return true;
}

bool report_trace_add(struct report_model *model, enum trace_kind kind,
                      const struct trace_item *item)
{
    if (kind == TRACE_FRAME)
        return true;
    struct report_rank *rank = report_rank(model, item->rank);
    if (!rank || !trace_summary_add(&model->trace, kind, item))
        return false;
    rank->is_traced = true;
    if (kind == TRACE_START) {
        if (!rank->host[0])
            report_word_copy(rank->host, sizeof(rank->host), item->host);
        if (item->size > model->size && item->size <= report_ranks_max)
            model->size = item->size;
        return true;
    }
    if (kind == TRACE_END) {
        model->ended++;
        if (rank->source != REPORT_STATS)
            report_word_copy(rank->how, sizeof(rank->how), item->how);
        return true;
    }
    if (item->op == tk_trace_lost)
        return true;
    add_to_matrix(&model->matrix, item);
    return report_timeline_add(&model->timeline, item) && add_to_waits(model, item) &&
           (tk_trace_is_moment(item->op) || add_to_calls(model, item));
}

/* ---- over time ---- */

static const char *const figure_names[report_figures][8] = {
    [REPORT_MESSAGES_SENT] = {"short_requests", "medium_requests", "long_requests", "short_replies",
                              "medium_replies", "long_replies"},
    [REPORT_PUTS] = {"puts_"},
    [REPORT_GETS] = {"gets_"},
    [REPORT_BYTES_NETWORK] = {"put_bytes_network", "get_bytes_network", "message_bytes_network"},
    [REPORT_BYTES_NEIGHBOURS] = {"put_bytes_neighbours", "get_bytes_neighbours",
                                 "message_bytes_neighbours"},
    [REPORT_CREDIT_NS] = {"credit_wait_ns"},
    [REPORT_SPACE_NS] = {"room_wait_ns"},
    [REPORT_FAILOVERS] = {"failovers"},
    [REPORT_BACK] = {"connections_back"},
    [REPORT_CONNECTIONS] = {"connections_made"},
    [REPORT_REGISTRATIONS] = {"regions_registered"}};

void report_sample_rank(struct report_sample *sample, const struct report_rank *rank,
                        const uint64_t *counters, uint64_t micros)
{
    if (sample->ranks++ == 0)
        sample->rails_min = UINT32_MAX;
    sample->micros = micros > sample->micros ? micros : sample->micros;
    sample->rails_min = rank->rails < sample->rails_min ? rank->rails : sample->rails_min;
    sample->rails_max = rank->rails > sample->rails_max ? rank->rails : sample->rails_max;
    sample->memory_kb += rank->memory_kb;
    for (unsigned f = 0; f < report_figures; f++)
        sample->figures[f] += report_sum(counters, figure_names[f]);
}

/* Where there are too many samples, every other one goes. */
void report_sample_add(struct report_model *model, const struct report_sample *sample)
{
    if (!model->samples)
        model->samples = calloc(report_samples_max, sizeof(*model->samples));
    if (!model->samples || sample->ranks == 0 || model->records++ % model->sample_step != 0)
        return;
    if (model->sample_count == report_samples_max) {
        for (size_t i = 0; i < report_samples_max / 2; i++)
            model->samples[i] = model->samples[2 * i];
        model->sample_count /= 2;
        model->sample_step *= 2;
    }
    model->samples[model->sample_count++] = *sample;
}

bool report_setting_add(struct report_model *model, struct trace_word name, struct trace_word value)
{
    if (!model->settings)
        model->settings = calloc(report_settings_max, sizeof(*model->settings));
    if (!model->settings)
        return false;
    size_t at = 0;
    while (at < model->setting_count && !trace_word_is(name, model->settings[at].name))
        at++;
    if (at == report_settings_max)
        return true;
    report_word_copy(model->settings[at].name, sizeof(model->settings[at].name), name);
    report_word_copy(model->settings[at].value, sizeof(model->settings[at].value), value);
    if (at == model->setting_count)
        model->setting_count++;
    return true;
}
