/* SPDX-License-Identifier: BSD-3-Clause */
/* See job.h: start and end of a workload, records from all to all, the stop flag. Owns wl_job. One
 * thread but for wl_stopped(). */
#include "config.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject.h"
#include "job.h"
#include "paths.h"
#include "surroundings.h"

struct wl_job wl_job;
volatile int wl_stop_flag;

const char *const wl_verify_words[] = {"none", "sample", "full", NULL};
const char *const wl_layer_words[] = {"raw", "api", "both", NULL};

static const char *program_name = "workload";

/* ---- Speaking and ending */

static void speak(const char *format, va_list args)
{
    char line[1024];
    int used = snprintf(line, sizeof(line), "%s: ", program_name);
    vsnprintf(line + used, sizeof(line) - (size_t)used, format, args);
    /* One call: lines of several ranks must not be cut into each other. */
    fprintf(stderr, "%s\n", line);
}

void wl_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    speak(format, args);
    va_end(args);
}

void wl_job_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    speak(format, args);
    va_end(args);
    gasnet_exit(wl_exit_fail);
    abort();
}

void wl_job_refuse(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (wl_job.me == 0)
        speak(format, args);
    va_end(args);
    wl_job_barrier();
    gasnet_exit(status);
    abort();
}

/* ---- Records from all to all: each rank sends its own in pieces, all wait for all pieces */

static char *share_place;
static size_t share_size;
static volatile size_t share_arrived;

static void on_piece(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t rank,
                     gex_AM_Arg_t offset)
{
    (void)token;
    memcpy(share_place + (size_t)rank * share_size + (size_t)offset, data, nbytes);
    share_arrived += nbytes;
}

static void on_stop(gex_Token_t token)
{
    (void)token;
    wl_stop_flag = 1;
}

static gex_AM_Entry_t own_handlers[] = {
    {0, (gex_AM_Fn_t)on_piece, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "piece"},
    {0, (gex_AM_Fn_t)on_stop, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "stop"},
};

static void send_pieces(gex_Rank_t to, const char *mine, size_t size)
{
    size_t most = gex_AM_LUBRequestMedium();
    for (size_t offset = 0; offset < size; offset += most) {
        size_t piece = size - offset < most ? size - offset : most;
        gex_AM_RequestMedium(wl_job.tm, to, own_handlers[0].gex_index, (void *)(mine + offset),
                             piece, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)wl_job.me,
                             (gex_AM_Arg_t)offset);
    }
}

/* The barriers: no rank sends before all have a buffer, nor begins the next before all have this
 * one. */
static void exchange(const void *mine, void *all, size_t size, gex_Rank_t first, gex_Rank_t end)
{
    share_place = all;
    share_size = size;
    share_arrived = 0;
    wl_job_barrier();
    for (gex_Rank_t to = first; to < end; to++)
        send_pieces(to, mine, size);
    if (wl_job.me >= first && wl_job.me < end)
        GASNET_BLOCKUNTIL(share_arrived == size * wl_job.size);
    wl_job_barrier();
}

void wl_job_share(const void *mine, void *all, size_t size)
{
    exchange(mine, all, size, 0, wl_job.size);
}

void wl_job_gather(gex_Rank_t root, const void *mine, void *all, size_t size)
{
    exchange(mine, all, size, root, root + 1);
}

void wl_job_barrier(void)
{
    gex_Coll_BarrierBlocking(wl_job.tm, 0);
}

void wl_job_barrier_asleep(void)
{
    const struct timespec nap = {0, 10000000};
    gex_Event_t event = gex_Coll_BarrierNB(wl_job.tm, 0);
    while (gex_Event_Test(event) != GASNET_OK) {
        nanosleep(&nap, NULL);
        gasnet_AMPoll();
    }
}

void wl_stop(void)
{
    wl_stop_flag = 1;
    for (gex_Rank_t to = 0; to < wl_job.size; to++)
        if (to != wl_job.me)
            gex_AM_RequestShort(wl_job.tm, to, own_handlers[1].gex_index, 0);
}

/* ---- Start */

struct verdict {
    int32_t parsed;
    uint64_t hash;
    char why[wl_why_max];
};

static _Noreturn void help(const struct wl_program *program)
{
    if (wl_job.me == 0) {
        wl_options_help(program, stdout);
        fflush(stdout);
    }
    wl_job_barrier();
    gasnet_exit(wl_exit_pass);
    abort();
}

/* All ranks see the same verdicts and end in the same way. */
static void agree(const struct wl_program *program, const struct verdict *mine)
{
    struct verdict *all = calloc(wl_job.size, sizeof(*all));
    if (!all)
        wl_job_die("no memory for %u parameter sets", (unsigned)wl_job.size);
    wl_job_share(mine, all, sizeof(*mine));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (all[rank].parsed == wl_refused)
            wl_job_refuse(wl_exit_bad, "%s", all[rank].why);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (all[rank].parsed != all[0].parsed || all[rank].hash != all[0].hash)
            wl_job_refuse(wl_exit_bad, "rank %u was given other parameters than rank 0",
                          (unsigned)rank);
    free(all);
    if (mine->parsed == wl_help)
        help(program);
}

/* Rank 0 writes the report: its destination is checked before any rank waits for it. */
static void look_at_paths(const struct wl_program *program, const void *values,
                          struct verdict *mine)
{
    for (size_t i = 0; i < program->count && wl_job.me == 0 && mine->parsed == wl_run; i++) {
        const struct wl_option *option = &program->options[i];
        if (strcmp(option->name, "json") && strcmp(option->name, "csv"))
            continue;
        const char *path = *(const char *const *)((const char *)values + option->offset);
        if (path && !wl_path_writable(option->name, path, mine->why, sizeof(mine->why)))
            mine->parsed = wl_refused;
    }
}

static void register_handlers(gex_AM_Entry_t *table, size_t count)
{
    if (gex_EP_RegisterHandlers(wl_job.ep, table, count))
        wl_job_die("handlers can't be registered");
}

void wl_job_handlers(gex_AM_Entry_t *table, size_t count)
{
    register_handlers(table, count);
    wl_job_barrier();
}

static void look_around(void)
{
    gex_Rank_t host_ranks, shared_ranks;
    gex_System_QueryHostInfo(NULL, &host_ranks, NULL);
    gex_System_QueryNbrhdInfo(NULL, &shared_ranks, NULL);
    wl_job.host_ranks = (int)host_ranks;
    wl_job.shared_ranks = (int)shared_ranks;
    wl_job.cpus = wl_cpus();
    wl_host_name(wl_job.host, sizeof(wl_job.host));
}

void wl_job_start(int *argc, char ***argv, const struct wl_program *program, void *values,
                  uint64_t *given)
{
    struct verdict mine = {0};
    program_name = program->name;
    if (gex_Client_Init(&wl_job.client, &wl_job.ep, &wl_job.tm, program->name, argc, argv, 0))
        /* The library has said why. Without any port a workload cannot run.
         */
        exit(wl_ports() ? wl_exit_fail : wl_exit_skip);
    wl_job.me = gex_TM_QueryRank(wl_job.tm);
    wl_job.size = gex_TM_QuerySize(wl_job.tm);
    wl_job_handlers(own_handlers, sizeof(own_handlers) / sizeof(*own_handlers));
    look_around();
    mine.parsed =
        (int32_t)wl_options_parse(program, *argc, *argv, values, given, mine.why, sizeof(mine.why));
    look_at_paths(program, values, &mine);
    if (mine.parsed == wl_run)
        mine.hash = wl_options_hash(program, values);
    agree(program, &mine);
}

void wl_job_segment(size_t size)
{
    gex_Segment_t segment;
    uintptr_t attached = 0;
    size = (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    wl_job.segments = calloc(wl_job.size, sizeof(*wl_job.segments));
    if (!wl_job.segments || gex_Segment_Attach(&segment, wl_job.tm, size))
        wl_job_die("no segment of %zu bytes", size);
    wl_job.segment = gex_Segment_QueryAddr(segment);
    wl_job.segment_size = gex_Segment_QuerySize(segment);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(wl_job.tm, rank, &wl_job.segments[rank], NULL,
                                                  &attached, 0));
    /* Page faults must not be in any measurement. */
    memset(wl_job.segment, 0, wl_job.segment_size);
    wl_job_barrier();
}

/* ---- Report */

void wl_job_describe(struct wl_report *r, const struct wl_program *program, const void *values,
                     int threads)
{
    char text[4096];
    wl_report_whole(r, wl_params, "ranks", wl_job.size);
    for (size_t i = 0; i < program->count; i++) {
        const struct wl_option *option = &program->options[i];
        if (option->rules & wl_not_hashed)
            continue;
        wl_option_print(option, values, text, sizeof(text));
        if (option->type == wl_text || option->type == wl_word)
            wl_report_text(r, wl_params, option->name, text);
        else if (option->type == wl_real)
            wl_report_real(r, wl_params, option->name, strtod(text, NULL));
        else
            wl_report_whole(r, wl_params, option->name, strtoll(text, NULL, 10));
    }
    bool network = wl_job.uses_ports || (wl_job.shared_ranks < (int)wl_job.size && !wl_job.medium);
    char names[256];
    wl_provider(names, sizeof(names));
    wl_report_text(r, wl_env, "host", wl_job.host);
    wl_report_whole(r, wl_env, "cpus", wl_job.cpus);
    wl_report_whole(r, wl_env, "ranks_per_host", wl_job.host_ranks);
    wl_report_whole(r, wl_env, "ranks_sharing_memory", wl_job.shared_ranks);
    wl_report_text(r, wl_env, "provider",
                   wl_job.medium ? wl_job.medium : (network ? names : "shared memory"));
    wl_report_whole(r, wl_env, "active_ports", network ? wl_ports() : 0);
    wl_report_flag(r, wl_env, "software_rdma", network && wl_software_rdma());
    wl_report_flag(r, wl_env, "oversubscribed", wl_job.host_ranks * threads > wl_job.cpus);
}

static bool write_files(const struct wl_report *r, const struct wl_common *common)
{
    char why[wl_why_max];
    if (common->json && !wl_report_write_json(r, common->json, why, sizeof(why))) {
        wl_say("%s", why);
        return false;
    }
    if (common->csv && !wl_report_write_csv(r, common->csv, why, sizeof(why))) {
        wl_say("%s", why);
        return false;
    }
    return true;
}

/* A fault that was asked for and never happened on any rank. */
static bool fault_is_missing(const struct wl_common *common)
{
    int32_t came = wl_inject_came(), *all = calloc(wl_job.size, sizeof(*all));
    bool missing = common->inject && strcmp(common->inject, "none") != 0;
    if (!all)
        wl_job_die("no memory for the end");
    wl_job_share(&came, all, sizeof(came));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        missing &= !all[rank];
    free(all);
    return missing;
}

void wl_job_end(struct wl_report *r, const struct wl_common *common, const char *const *columns)
{
    int32_t status = wl_exit_pass, *all = calloc(wl_job.size, sizeof(*all));
    bool missing = fault_is_missing(common);
    if (r && missing) {
        wl_say("--inject %s: its occasion never came, so nothing was tried", common->inject);
        wl_report_fail(r);
    }
    if (r) {
        wl_report_print(r, stdout);
        if (columns)
            wl_report_print_table(r, columns, stdout);
        fflush(stdout);
        if (!write_files(r, common) || !wl_report_passed(r))
            status = wl_exit_fail;
        wl_report_close(r);
    }
    if (!all)
        wl_job_die("no memory for the end");
    wl_job_share(&status, all, sizeof(status));
    status = all[0];
    free(all);
    gasnet_exit(status);
    abort();
}
