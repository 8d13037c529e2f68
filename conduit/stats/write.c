/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where statistics go, and when. Owns the name of the file, the mask, and the only text buffer; a
 * thread that finds it in use prints nothing. The file is opened for each text, because programs
 * close files that they do not know. Functions called at the end of a job are async-signal-safe. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/report.h"
#include "stats/file.h"
#include "stats/format.h"
#include "stats/write.h"

enum { line_max = 2048, functions_max = 8 };

static struct tk_stats_plan stats_plan;
static struct tk_stats_file file = {.before = "GASNET_STATSFILE: cannot ",
                                    .after = "; the job goes on without these statistics"};
static bool is_open;
static char label[32]; /* in front of lines where ranks share a file */
static _Atomic uint32_t mask;
static char mask_text[33];
static uint64_t since;
static bool has_written; /* `stats_now` is the value before */
static atomic_flag is_written = ATOMIC_FLAG_INIT;
static atomic_flag in_use = ATOMIC_FLAG_INIT;
static struct tk_text text;
static struct tk_stats stats_now;
static void (*functions[functions_max])(tk_stats_print *print);
static unsigned function_count;

/* ---- the file ---- */

/* The file of one rank is truncated; a file that ranks share is truncated by rank 0 before any
 * other has passed the last wait of start-up. */
static int create(bool is_shared)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY |
                (!is_shared || stats_plan.rank == 0 ? O_TRUNC : O_APPEND);
    int fd = open(file.path, flags, 0666);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

void tk_stats_open(const struct tk_stats_plan *plan)
{
    bool is_shared = !strchr(plan->file, '%') && plan->size > 1;
    stats_plan = *plan;
    atomic_store_explicit(&mask, plan->mask, memory_order_relaxed);
    since = tk_now();
    if (!plan->file[0] || (!plan->writes && !(is_shared && plan->rank == 0)))
        return;
    if (is_shared)
        snprintf(label, sizeof(label), "[%u] ", plan->rank);
    int error = tk_stats_file_name(&file, plan->file, plan->rank);
    if (!error && file.path[0])
        error = create(is_shared);
    if (error)
        tk_stats_file_failed(&file, "create", error);
    is_open = plan->writes && !error;
}

bool tk_stats_is_open(void)
{
    return is_open;
}

/* ---- texts ---- */

static bool text_begin(void)
{
    if (atomic_flag_test_and_set(&in_use))
        return false;
    text.length = 0;
    text.error = 0;
    text.fd = file.path[0]
                  ? open(file.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666)
                  : file.stream;
    if (text.fd >= 0)
        return true;
    tk_stats_file_failed(&file, "open", errno);
    atomic_flag_clear(&in_use);
    return false;
}

static void text_end(void)
{
    tk_text_flush(&text);
    if (file.path[0] && close(text.fd) != 0 && !text.error)
        text.error = errno;
    if (text.error)
        tk_stats_file_failed(&file, "write", text.error);
    atomic_flag_clear(&in_use);
}

static void write_all(const char *how)
{
    const struct tk_stats_heading heading = {.rank = stats_plan.rank,
                                             .size = stats_plan.size,
                                             .host = stats_plan.host,
                                             .how = how,
                                             .label = label,
                                             .settings = stats_plan.settings,
                                             .ns = tk_now() - since,
                                             .pid = (int)getpid()};
    uint32_t wanted = atomic_load_explicit(&mask, memory_order_relaxed);
    if (!text_begin())
        return;
    tk_stats_sum(&stats_now);
    if (file.is_json)
        tk_stats_for_programs(&text, &heading, &stats_now, wanted);
    else
        tk_stats_for_people(&text, &heading, &stats_now, wanted);
    text_end();
}

void tk_stats_write(const char *how, bool by_exit)
{
    if (!is_open || atomic_flag_test_and_set(&is_written))
        return;
    for (unsigned i = 0; by_exit && i < function_count; i++)
        functions[i](tk_stats_print_line);
    write_all(how);
    has_written = true;
}

void tk_stats_values(uint64_t *values)
{
    if (!has_written)
        tk_stats_sum(&stats_now);
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        values[i] = tk_stats_value(&stats_now, &tk_stats_rows[i]);
}

void tk_stats_write_summary(const struct tk_stats_summary *summary)
{
    uint32_t wanted = atomic_load_explicit(&mask, memory_order_relaxed);
    if (!is_open || summary->ranks == 0 || !text_begin())
        return;
    if (file.is_json)
        tk_stats_summary_for_programs(&text, summary, stats_plan.size, wanted);
    else
        tk_stats_summary_for_people(&text, summary, label, stats_plan.size, wanted);
    text_end();
}

void tk_stats_dump(bool reset)
{
    if (is_open)
        write_all("asked for by the program");
    if (!reset)
        return;
    tk_stats_reset();
    since = tk_now();
}

/* ---- programs ---- */

bool tk_stats_prints(void)
{
    return is_open && atomic_load_explicit(&mask, memory_order_relaxed) & tk_stats_mask_of('H');
}

void tk_stats_vprint_line(const char *format, va_list args)
{
    char line[line_max];
    if (!is_open)
        return;
    vsnprintf(line, sizeof(line), format, args);
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\n')
        line[length - 1] = '\0';
    if (!text_begin())
        return;
    if (file.is_json) {
        tk_text_add(&text, "{\"rank\":");
        tk_text_number(&text, stats_plan.rank);
        tk_text_add(&text, ",\"program\":");
        tk_text_quoted(&text, line);
        tk_text_add(&text, "}\n");
    } else {
        tk_text_add(&text, label);
        tk_text_add(&text, "H ");
        tk_text_add(&text, line);
        tk_text_char(&text, '\n');
    }
    text_end();
}

void tk_stats_print_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tk_stats_vprint_line(format, args);
    va_end(args);
}

const char *tk_stats_mask_text(void)
{
    if (!is_open)
        return "";
    tk_stats_mask_format(atomic_load_explicit(&mask, memory_order_relaxed), mask_text,
                         sizeof(mask_text));
    return mask_text;
}

void tk_stats_mask_set(const char *wanted)
{
    uint32_t bits;
    if (tk_stats_mask_parse(wanted, &bits))
        atomic_store_explicit(&mask, bits, memory_order_relaxed);
}

void tk_stats_at_end(void (*function)(tk_stats_print *print))
{
    if (function_count < functions_max)
        functions[function_count++] = function;
}
