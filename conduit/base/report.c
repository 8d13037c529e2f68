/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages to the user. Owns the prefix "trunkline[rank@host]: ", written once at start-up; no
 * lock: a line is one write(2). */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mode.h"
#include "base/report.h"

enum {
    line_max = 2048,
    hold_back_s =
        1 /* an abort reaches all ranks of a busy host within this time, under mpirun too */
};

static char prefix[300] = "trunkline: ";
static bool report_is_quiet, is_held_back;
static TK_PER_THREAD bool is_returned;
static TK_PER_THREAD char *into;
static TK_PER_THREAD size_t into_size;
static uint32_t my_rank;
static bool is_identified;
bool tk_verbose_errors = true;

void tk_report_identity(uint32_t rank, uint32_t size, const char *host)
{
    my_rank = rank;
    is_identified = true;
    if (size > 1)
        snprintf(prefix, sizeof(prefix), "trunkline[%u@%s]: ", rank, host);
}

int64_t tk_report_rank(void)
{
    return is_identified ? (int64_t)my_rank : -1;
}

void tk_report_starting(bool starting)
{
    is_held_back = starting && my_rank != 0;
}

void tk_report_quiet(bool quiet)
{
    report_is_quiet = quiet;
}

static void report_write(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, text, length);
        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

static void report_line(const char *format, va_list args)
{
    char text[line_max];
    size_t start = strlen(prefix);
    memcpy(text, prefix, start);
    int n = vsnprintf(text + start, sizeof(text) - start - 1, format, args);
    size_t length = start + (n > 0 ? (size_t)n : 0);
    if (length > sizeof(text) - 2)
        length = sizeof(text) - 2;
    text[length] = '\n';
    report_write(text, length + 1);
}

/* Resumes the sleep after a signal: it waits for one that ends this process. */
static void report_hold_back(void)
{
    struct timespec left = {.tv_sec = hold_back_s};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

void tk_report_returned(bool returned)
{
    is_returned = returned;
}

void tk_report_into(char *text, size_t size)
{
    into = text;
    into_size = size;
}

void tk_log_error(const char *format, ...)
{
    va_list args;
    if (into) {
        va_start(args, format);
        vsnprintf(into, into_size, format, args);
        va_end(args);
        return;
    }
    if (is_returned && !tk_verbose_errors)
        return;
    if (is_held_back)
        report_hold_back();
    va_start(args, format);
    report_line(format, args);
    va_end(args);
}

void tk_log_warn(const char *format, ...)
{
    va_list args;
    if (report_is_quiet)
        return;
    va_start(args, format);
    report_line(format, args);
    va_end(args);
}

void tk_log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_line(format, args);
    va_end(args);
}

void tk_verbose_error(const char *format, ...)
{
    va_list args;
    if (!tk_verbose_errors)
        return;
    va_start(args, format);
    report_line(format, args);
    va_end(args);
}

void tk_panic(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_line(format, args);
    va_end(args);
    abort();
}

void tk_log_error_signal_safe(const char *text)
{
    char buffer[sizeof(prefix) + 512];
    size_t start = strlen(prefix), length = strlen(text);
    if (length > 500)
        length = 500;
    memcpy(buffer, prefix, start);
    memcpy(buffer + start, text, length);
    buffer[start + length] = '\n';
    report_write(buffer, start + length + 1);
}

static atomic_bool has_lost_output;

void tk_report_output_lost(void)
{
    atomic_store_explicit(&has_lost_output, true, memory_order_relaxed);
}

bool tk_report_has_lost_output(void)
{
    return atomic_load_explicit(&has_lost_output, memory_order_relaxed);
}
