/* SPDX-License-Identifier: BSD-3-Clause */
/* See stacks.h. */
#include "config.h"

#include "stacks.h"

#include "session.h"
#include "symbols.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 10 };

enum { PATH_BYTES = SESSION_PATH_MAX + 32 };

static void name_file(const char *session, uint32_t rank, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/" TK_RANK_STACK_NAME, session, rank);
}

/* A signal mask from a thread's status; an empty mask if the status can't be read. */
static uint64_t mask_of(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

/* Whether the thread's process handles the signal, so that the signal does not kill it, and the
 * thread does not block it. */
static bool can_answer(pid_t pid, pid_t tid, uint32_t number)
{
    char path[64], status[4096];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
    if (fd >= 0)
        close(fd);
    status[n > 0 ? n : 0] = 0;
    uint64_t bit = UINT64_C(1) << (number - 1);
    return mask_of(status, "\nSigCgt:") & bit && !(mask_of(status, "\nSigBlk:") & bit);
}

static unsigned signal_threads(pid_t pid, uint32_t number)
{
    char path[64];
    unsigned asked = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *d; threads && (d = readdir(threads));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        if (tid > 0 && can_answer(pid, tid, number))
            asked += syscall(SYS_tgkill, pid, tid, (int)number) == 0;
    }
    if (threads)
        closedir(threads);
    return asked;
}

unsigned stacks_ask(const char *session, uint32_t rank, const struct tk_rank_slot *slot, char state,
                    char *why, size_t size)
{
    char path[PATH_BYTES];
    bool is_stopped = state == 'T' || state == 't';
    if (is_stopped || slot->stack_signal < 1 || slot->stack_signal > 64) {
        snprintf(why, size,
                 is_stopped ? "a stopped process can't show them itself"
                            : "the rank does not catch the signal to show them itself");
        return 0;
    }
    name_file(session, rank, path);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        return 0;
    }
    close(fd);
    unsigned asked = signal_threads((pid_t)slot->pid, slot->stack_signal);
    if (!asked) {
        snprintf(why, size, "no thread takes the signal to show them itself");
        unlink(path);
    }
    return asked;
}

struct output {
    char *text;
    size_t size, length;
};

static void add(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct output *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->length, out->size - out->length, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < out->size - out->length)
        out->length += (size_t)n;
    out->text[out->length] = 0;
}

/* Each address except a thread's first is a return address; if the call is the function's last
 * instruction, it lies behind the function. */
static void add_line(struct output *out, pid_t pid, const char *line)
{
    unsigned frame;
    unsigned long long address;
    char name[200];
    if (sscanf(line, "#%u 0x%llx", &frame, &address) != 2) {
        add(out, "%s\n", line);
        return;
    }
    symbols_name(pid, address - (frame > 0), name, sizeof(name));
    add(out, "#%u 0x%llx in %s ()\n", frame, address, name);
}

bool stacks_read(const char *session, uint32_t rank, pid_t pid, unsigned asked, char *text,
                 size_t size)
{
    static char raw[FILE_BYTES];
    char path[PATH_BYTES];
    struct output out = {.text = text, .size = size};
    unsigned answered = 0;
    name_file(session, rank, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, raw, sizeof(raw) - 1);
    if (fd >= 0)
        close(fd);
    raw[n > 0 ? n : 0] = 0;
    text[0] = 0;
    for (char *rest = raw, *line; (line = strsep(&rest, "\n"));) {
        answered += !strncmp(line, "Thread ", 7);
        if (*line)
            add_line(&out, pid, line);
    }
    return answered >= asked;
}

void stacks_end(const char *session, uint32_t rank)
{
    char path[PATH_BYTES];
    name_file(session, rank, path);
    unlink(path);
}
