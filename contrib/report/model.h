/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a report shows: a job, as far as its files tell. Readers fill it in, in any order of files;
 * rules.c judges it and write_json.c writes it. Its size depends on the numbers of ranks, threads
 * and pairs of ranks, not on the length of the files. One thread. */
#ifndef TRUNKLINE_REPORT_MODEL_H
#define TRUNKLINE_REPORT_MODEL_H

#include "contrib/report/timeline.h"
#include "contrib/report/word_copy.h"
#include "contrib/trace/summary.h"
#include "stats/table.h"

enum {
    report_ranks_max = 131072,
    report_word_max = 128,
    report_cells = 64, /* of a side of the matrix, at most */
    report_samples_max = 600,
    report_settings_max = 256
};

/* Where counters came from; a later one in this list replaces an earlier one. */
enum report_source { REPORT_NONE, REPORT_TOP, REPORT_STATS };

struct report_sizes {
    uint64_t paths[tk_paths][tk_size_classes];
};

struct report_rank {
    bool is_known, is_traced, was_seen; /* in any file; in a trace; by --top */
    char host[report_word_max], how[report_word_max];
    uint32_t pid;
    enum report_source source; /* of the counters */
    uint64_t micros;           /* that they cover */
    uint64_t *counters;        /* tk_stats_rows_max; NULL: none */
    struct report_sizes *sizes;
    /* of the last record of --top */
    char state[16], waits_for[24], why[report_word_max];
    uint32_t wait_peer; /* tk_trace_no_peer: none */
    uint64_t wait_micros;
    uint32_t rails;
    uint64_t memory_kb;
};

/* What a pair's operations were, and how they travelled as far as a trace has it. */
enum report_kind {
    REPORT_TRANSFERS,
    REPORT_MESSAGES,
    REPORT_OTHER, /* atomics and non-contiguous transfers */
    report_kinds
};
enum report_path {
    REPORT_NETWORK, /* by a rail that a trace of an earlier release does not name */
    REPORT_SHARED,
    REPORT_SELF,
    REPORT_UNKNOWN, /* of messages in such a trace, and of others that the library sends by message
                     */
    REPORT_SEVERAL, /* cut into pieces over several rails */
    REPORT_RAILS,   /* the first rail; others follow */
    report_paths = REPORT_RAILS + report_rails_max
};

struct report_cell {
    uint64_t count, bytes;
};

/* Cell [from][to] stands for 2^shift ranks each way. */
struct report_matrix {
    unsigned shift;
    bool is_used;
    struct report_cell cells[report_kinds][report_paths][report_cells][report_cells];
};

/* Figures over time, summed over ranks. */
enum report_figure {
    REPORT_MESSAGES_SENT,
    REPORT_PUTS,
    REPORT_GETS,
    REPORT_BYTES_NETWORK,
    REPORT_BYTES_NEIGHBOURS,
    REPORT_CREDIT_NS,
    REPORT_SPACE_NS,
    REPORT_FAILOVERS,
    REPORT_BACK,
    REPORT_CONNECTIONS,
    REPORT_REGISTRATIONS,
    report_figures
};

struct report_sample {
    uint64_t micros; /* of the rank that has run longest */
    uint64_t figures[report_figures];
    uint32_t ranks, rails_min, rails_max; /* ranks with counters */
    uint64_t memory_kb;
};

struct report_setting {
    char name[64], value[report_word_max];
};

/* Of the calls of one operation on one path. */
struct report_calls {
    uint64_t times[64];              /* by the logarithm of ns; [0]: 0 and 1 */
    uint64_t bytes[tk_size_classes]; /* those with bytes */
};

struct report_model {
    char title[report_word_max], program[report_word_max];
    uint32_t size, hosts, silent_hosts;
    struct report_rank *ranks;
    uint32_t rank_count;
    struct report_matrix matrix;
    struct trace_summary trace;
    struct trace_table waits; /* by rank, peer and operation: credits and space */
    struct trace_table calls; /* by operation and path; `more`: struct report_calls */
    struct report_timeline timeline;
    struct report_sample *samples;
    size_t sample_count;
    unsigned sample_step; /* each so many records are one sample */
    uint64_t records;
    uint64_t ended; /* ranks whose trace has an end */
    struct report_setting *settings;
    size_t setting_count;
    bool has_settings, has_text;
    unsigned stats_files, trace_files, top_files;
    uint64_t cut; /* files that end within a line */
};

struct report_model *report_model_new(void);
void report_model_free(struct report_model *model);

/* NULL: the number is too large, or no memory. Marks it as known. */
struct report_rank *report_rank(struct report_model *model, uint32_t rank);

/* For a rank of the job: counters, all 0, and sizes if they are wanted. False: no memory. */
bool report_rank_counters(struct report_rank *rank, bool with_sizes);
uint64_t report_counter(const struct report_rank *rank, const char *id);

/* The sum of rows with one of these names; a name that ends in _ stands for all that begin with it.
 */
uint64_t report_sum(const uint64_t *counters, const char *const *names);

bool report_trace_add(struct report_model *model, enum trace_kind kind,
                      const struct trace_item *item);
/* A rank of a record of --top, whose counters are these; then the record as a whole. */
void report_sample_rank(struct report_sample *sample, const struct report_rank *rank,
                        const uint64_t *counters, uint64_t micros);
void report_sample_add(struct report_model *model, const struct report_sample *sample);
bool report_setting_add(struct report_model *model, struct trace_word name,
                        struct trace_word value);

/* Ranks of the job: the size that a file says, or one more than the last that was seen. */
uint32_t report_size(const struct report_model *model);

#endif
