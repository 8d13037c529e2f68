/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the ranks for gasnetrun_ibv --report: each rank of this host writes its statistics and,
 * where its library records one, its trace to the session directory. When no process is left, the
 * guard sends them to the head, one after the other, in pieces of whole lines, so that the head can
 * append pieces of all ranks to one file. Owns the open file; one thread, no lock. */
#include "config.h"

#include "guard_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Clocks of a file server may differ from ours by this. */
enum { CLOCK_SLACK = 2 };

enum { READ_SIZE = 256 << 10 };

static const struct file_kind {
    const char *setting, *name; /* below the session directory */
} kinds[JOB_FILES] = {[JOB_FILE_STATS] = {"GASNET_STATSFILE", "statistics.%.json"},
                      [JOB_FILE_TRACE] = {"GASNET_TRACEFILE", "trace.%"}};

/* The user's own value of a setting; NULL: there is none. */
static const char *own_value(const struct job *job, const char *name)
{
    size_t n = strlen(name);
    for (char **e = job->env; e && *e; e++)
        if (!strncmp(*e, name, n) && (*e)[n] == '=')
            return (*e)[n + 1] ? *e + n + 1 : NULL;
    return NULL;
}

/* False: the name is too long. */
static bool pattern_of(const struct guard *g, enum job_file kind, char *pattern, size_t size)
{
    const char *own = own_value(g->job, kinds[kind].setting);
    int n = own ? snprintf(pattern, size, "%s", own)
                : snprintf(pattern, size, "%s/%s", g->session, kinds[kind].name);
    return n > 0 && (size_t)n < size;
}

size_t guard_add_file_settings(const struct guard *g, char **env, size_t used)
{
    char pattern[SESSION_PATH_MAX + 64], *entry;
    for (enum job_file kind = 0; kind < JOB_FILES && g->job->report; kind++)
        if (!own_value(g->job, kinds[kind].setting) &&
            pattern_of(g, kind, pattern, sizeof(pattern)) &&
            asprintf(&entry, "%s=%s", kinds[kind].setting, pattern) > 0)
            env[used++] = entry;
    return used;
}

/* As the library does it, conduit/stats/file.c. A relative name is relative to the directory that
 * the job was started in, which is ours too. False: ranks share the file, or it is none. */
static bool name_of_rank(const char *pattern, uint32_t rank, char *name, size_t size)
{
    size_t used = 0;
    bool has_rank = false;
    for (const char *at = pattern; *at && used < size; at++) {
        bool is_rank = *at == '%';
        int n = is_rank ? snprintf(name + used, size - used, "%u", rank)
                        : snprintf(name + used, size - used, "%c", *at);
        has_rank |= is_rank;
        used += (size_t)n;
    }
    return has_rank && used < size;
}

/* Files of a user may be left by a former job. */
static int open_file(const struct guard *g, uint32_t rank, enum job_file kind)
{
    char pattern[SESSION_PATH_MAX + 64], name[SESSION_PATH_MAX + 512];
    struct stat s;
    if (!pattern_of(g, kind, pattern, sizeof(pattern)) ||
        !name_of_rank(pattern, rank, name, sizeof(name)))
        return -1;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
        s.st_mtime >= g->files.since - CLOCK_SLACK)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static size_t whole_lines(const struct bytes *b)
{
    const uint8_t *begin = bytes_front(b),
                  *end = b->length ? memrchr(begin, '\n', b->length) : NULL;
    return end ? (size_t)(end - begin) + 1 : 0;
}

static void close_file(struct guard_files *f)
{
    close(f->fd);
    f->fd = -1;
    f->next++;
    bytes_free(&f->line); /* the last line of a rank that was killed while it wrote */
}

void guard_drop_files(struct guard *g)
{
    if (g->files.fd >= 0)
        close_file(&g->files);
    g->files.next = JOB_FILES * g->count;
}

/* A line that is longer than a frame may be is not one of the library's. */
static void send_piece(struct guard *g, uint32_t rank, enum job_file kind)
{
    struct guard_files *f = &g->files;
    ssize_t n = read(f->fd, bytes_reserve(&f->line, READ_SIZE), READ_SIZE);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0)
        bytes_commit(&f->line, (size_t)n);
    size_t length = whole_lines(&f->line);
    if (length)
        wire_send(&g->output, WIRE_FILE, (uint16_t)kind, rank, bytes_front(&f->line), length);
    bytes_consume(&f->line, length);
    if (n <= 0 || f->line.length > WIRE_MAX_PAYLOAD - READ_SIZE)
        close_file(f);
}

bool guard_send_files(struct guard *g)
{
    struct guard_files *f = &g->files;
    while (g->job->report && f->next < JOB_FILES * g->count) {
        uint32_t rank = g->first + f->next / JOB_FILES;
        enum job_file kind = f->next % JOB_FILES;
        if (g->output.out.length > PUMP_BACKLOG)
            return false;
        if (f->fd < 0)
            f->fd = open_file(g, rank, kind);
        if (f->fd < 0)
            f->next++;
        else
            send_piece(g, rank, kind);
    }
    return true;
}
