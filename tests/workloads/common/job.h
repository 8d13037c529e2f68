/* SPDX-License-Identifier: BSD-3-Clause */
/* A workload as a job: start, agreement on parameters, small records from all to all, the flag by
 * which any rank stops all, and the common part of options and reports. Owns wl_job. Nothing here
 * is on a measured path but wl_stopped(). */
#ifndef WL_JOB_H
#define WL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"
#include "options.h"
#include "report.h"

#if GASNET_SEQ
enum { wl_threads_max = 1 };
#else
enum { wl_threads_max = 256 };
#endif

enum { wl_exit_pass = 0, wl_exit_fail = 1, wl_exit_bad = 2, wl_exit_skip = 77 };

struct wl_job {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Rank_t me, size;
    char *segment; /* this rank's, after wl_job_segment() */
    size_t segment_size;
    void **segments; /* everybody's, as remote addresses */
    char host[256];
    bool uses_ports;    /* the present run, also between ranks that share memory */
    const char *medium; /* the transport of this run when it is not RDMA; else NULL */
    int cpus, host_ranks, shared_ranks; /* CPUs that may be used; ranks of this host; neighbours */
};
extern struct wl_job wl_job;

/* Options that all workloads have: put WL_COMMON_OPTIONS(struct of values, layer) into the table
 * and a struct wl_common named `common` into the struct. */
struct wl_common {
    double duration, warmup;
    int64_t seed, timeout_ms, verify, layer;
    const char *json, *csv, *inject;
};
enum { wl_verify_none, wl_verify_sample, wl_verify_full };
enum { wl_layer_raw, wl_layer_api, wl_layer_both };
extern const char *const wl_verify_words[], *const wl_layer_words[];

/* clang-format off: one option a line */
#define WL_COMMON_OPTIONS(type, layer_standard)                                                    \
    {"duration",           wl_real, offsetof(type, common.duration), "5", 0.01, 86400, "s", 0, 0,  \
     "how long to measure"},                                                                       \
        {"warmup", wl_real, offsetof(type, common.warmup), "1", 0, 3600, "s",                      \
         0,        0,       "not counted before that"},                                            \
        {"seed", wl_whole, offsetof(type, common.seed), "1", 0, 1000000000000000, 0,               \
         0,      0,        "of all random choices"},                                               \
        {"timeout-ms",                                                                             \
         wl_whole,                                                                                 \
         offsetof(type, common.timeout_ms),                                                        \
         "5000",                                                                                   \
         10,                                                                                       \
         600000,                                                                                   \
         "ms",                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "an operation that takes longer ends the job"},                                           \
        {"verify",                                                                                 \
         wl_word,                                                                                  \
         offsetof(type, common.verify),                                                            \
         "sample",                                                                                 \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         wl_verify_words,                                                                          \
         0,                                                                                        \
         "what is looked at"},                                                                     \
        {"layer",                                                                                  \
         wl_word,                                                                                  \
         offsetof(type, common.layer),                                                             \
         layer_standard,                                                                           \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         wl_layer_words,                                                                           \
         0,                                                                                        \
         "raw verbs, the GASNet-EX interface, or both in turn"},                                   \
        {"json", wl_text,       offsetof(type, common.json),  0, 0, 0, 0,                          \
         0,      wl_not_hashed, "file for the report as JSON"},                                    \
        {"csv", wl_text,       offsetof(type, common.csv),         0, 0, 0, 0,                     \
         0,     wl_not_hashed, "file that gets a row for each run"},                               \
    {                                                                                              \
        "inject", wl_text, offsetof(type, common.inject), 0, 0, 0, 0, 0, 0,                        \
            "NAME[:K], a fault at its K-th occasion (1), to see a check fail"                      \
    }
/* clang-format on */

/* Starts the job, parses, and ends it on all ranks: 0 after --help, 2 when any rank refuses its
 * parameters or its parameters differ from rank 0's, with one line from rank 0. */
void wl_job_start(int *argc, char ***argv, const struct wl_program *program, void *values,
                  uint64_t *given);

/* Collective: a segment of whole pages for each rank, zeroed. Ends the job if a rank gets no
 * segment. */
void wl_job_segment(size_t size);

/* Registers the workload's handlers. */
void wl_job_handlers(gex_AM_Entry_t *table, size_t count);

void wl_job_barrier(void);

/* The same for ranks that only provide their memory meanwhile: polls a hundred times a
 * second and sleeps in between. Not for ranks that serve messages. */
void wl_job_barrier_asleep(void);

/* Collective: `size` bytes of every rank, in order of rank, into `all`. */
void wl_job_share(const void *mine, void *all, size_t size);

/* The same for the root only; `all` is NULL elsewhere. */
void wl_job_gather(gex_Rank_t root, const void *mine, void *all, size_t size);

/* One line on stderr, from this rank. */
void wl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Collective; all ranks pass the same text: one line from rank 0, then the end of the job. */
void wl_job_refuse(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* The same when only this rank knows: the line and the end at once. */
void wl_job_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The flag that stops all: any rank raises it, each sees it when it polls next. */
void wl_stop(void);
extern volatile int wl_stop_flag;
static inline bool wl_stopped(void)
{
    return wl_stop_flag != 0;
}

/* Rank 0's report: parameters and surroundings of the present run. */
void wl_job_describe(struct wl_report *r, const struct wl_program *program, const void *values,
                     int threads);

/* Prints and writes the report of rank 0 (NULL elsewhere) and ends the job on all ranks. `columns`:
 * see wl_report_print_table(), NULL for none. */
void wl_job_end(struct wl_report *r, const struct wl_common *common, const char *const *columns)
    __attribute__((noreturn));

#endif
