/* SPDX-License-Identifier: BSD-3-Clause */
/* See progress.h. Owns the terminal's descriptor. One thread. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "progress.h"

enum { line_most = 120 };
static const uint64_t pause_ns = WL_SECOND / 4;

static struct {
    int fd; /* -1: no terminal */
    const char *what;
    uint64_t began, total, next;
} shown = {.fd = -1};

/* The launcher passes on whole lines only, and its pipe is no terminal: what it writes to itself is
 * where the user looks. */
static int launchers_terminal(void)
{
    char link[64], path[64];
    snprintf(link, sizeof(link), "/proc/%d/fd/2", (int)getppid());
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length <= 0)
        return -1;
    path[length] = 0;
    if (strncmp(path, "/dev/pts/", 9) && strncmp(path, "/dev/tty", 8))
        return -1;
    return open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
}

void wl_progress_start(const char *what, uint64_t now, uint64_t total_ns)
{
    int fd = isatty(STDERR_FILENO) ? dup(STDERR_FILENO) : launchers_terminal();
    shown.fd = fd;
    shown.what = what;
    shown.began = now;
    shown.total = total_ns;
    shown.next = now + pause_ns;
}

int wl_progress_line(char *text, int size, const char *what, uint64_t taken_ns, uint64_t total_ns,
                     uint64_t done)
{
    double taken = (double)taken_ns / (double)WL_SECOND;
    double left = total_ns > taken_ns ? (double)(total_ns - taken_ns) / (double)WL_SECOND : 0;
    int used = snprintf(text, (size_t)size, "%s: %.1f s, %.4f Mops so far", what, taken,
                        taken > 0 ? (double)done / taken * 1e-6 : 0);
    if (total_ns && used > 0 && used < size)
        used += snprintf(text + used, (size_t)(size - used), ", %.0f s left", left);
    return used < size ? used : size - 1;
}

void wl_progress(uint64_t now, uint64_t done)
{
    char line[line_most + 8] = "\r";
    if (shown.fd < 0 || now < shown.next)
        return;
    shown.next = now + pause_ns;
    int used =
        1 + wl_progress_line(line + 1, line_most, shown.what, now - shown.began, shown.total, done);
    /* Other output meanwhile begins in the first column and overwrites this line. */
    used += snprintf(line + used, sizeof(line) - (size_t)used, "\033[K\r");
    if (write(shown.fd, line, (size_t)used) < 0)
        shown.next = UINT64_MAX; /* a terminal that went away is no reason to stop */
}

void wl_progress_expect(uint64_t now, double part)
{
    if (part > 0)
        shown.total = (uint64_t)((double)(now - shown.began) / part);
}

void wl_progress_end(void)
{
    if (shown.fd < 0)
        return;
    if (write(shown.fd, "\r\033[K", 4) < 0)
        shown.next = UINT64_MAX;
    close(shown.fd);
    shown.fd = -1;
}
