/* SPDX-License-Identifier: BSD-3-Clause */
/* See collect.h. */
#include "config.h"

#include "collect.h"

#include "spawner/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool collect_open(struct collect *c, const struct job *job, const char *parent)
{
    *c = (struct collect){.job = job, .parent = parent};
    c->hosts = calloc(job->host_count, sizeof(*c->hosts));
    c->has_stats = calloc(job->ranks, sizeof(*c->has_stats));
    for (uint32_t i = 0; c->hosts && i < job->host_count; i++)
        for (unsigned kind = 0; kind < JOB_FILES; kind++)
            c->hosts[i].fd[kind] = -1;
    return c->hosts && c->has_stats;
}

void collect_close(struct collect *c)
{
    for (uint32_t i = 0; c->hosts && i < c->job->host_count; i++)
        for (unsigned kind = 0; kind < JOB_FILES; kind++)
            if (c->hosts[i].fd[kind] >= 0)
                close(c->hosts[i].fd[kind]);
    free(c->hosts);
    free(c->has_stats);
    c->hosts = NULL;
    c->has_stats = NULL;
}

/* O_TMPFILE does not exist on every file system. */
int collect_file(const char *parent)
{
    char name[PATH_MAX];
    if ((size_t)snprintf(name, sizeof(name), "%s/gasnetrun-report-XXXXXX", parent) >=
        sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(name, O_CLOEXEC | O_APPEND);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static void write_piece(struct collect *c, int fd, const uint8_t *data, size_t length)
{
    while (length > 0 && !c->failed) {
        ssize_t n = fd >= 0 ? write(fd, data, length) : -1;
        if (n < 0 && fd >= 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            c->failed = true;
            log_error("cannot keep what ranks wrote for the report in a file in %s: %s; set "
                      "GASNET_TMPDIR to a directory with space",
                      c->parent, strerror(n < 0 ? errno : ENOSPC));
            return;
        }
        data += n;
        length -= (size_t)n;
    }
}

void collect_add(struct collect *c, const struct wire_frame *f)
{
    if (f->host >= c->job->host_count || f->rank >= c->job->ranks || f->aux >= JOB_FILES ||
        c->failed)
        return;
    int *fd = &c->hosts[f->host].fd[f->aux];
    if (*fd < 0)
        *fd = collect_file(c->parent);
    write_piece(c, *fd, f->payload, f->length);
    if (f->aux == JOB_FILE_STATS)
        c->has_stats[f->rank] = true;
    else
        c->has_trace = true;
}
