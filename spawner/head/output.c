/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the ranks' output; see output.h. Owns the queue, takes no lock. */
#include "config.h"

#include "output.h"
#include "spawner/util/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output_piece {
    struct output_piece *next;
    unsigned stream;
    size_t done, count;
    char data[];
};

void output_init(struct output *o)
{
    *o = (struct output){0};
    o->end = &o->first;
}

static void output_append(struct output *o, unsigned stream, const void *data, size_t count)
{
    struct output_piece *p = malloc(sizeof(*p) + count);
    if (!p) {
        log_error("out of memory for %zu bytes of output", count);
        o->failed = true;
        return;
    }
    *p = (struct output_piece){.stream = stream, .count = count};
    memcpy(p->data, data, count);
    *o->end = p;
    o->end = &p->next;
    o->length += count;
}

void output_add(struct output *o, unsigned stream, uint32_t rank, const void *data, size_t count)
{
    if (stream != STDOUT_FILENO && stream != STDERR_FILENO)
        return;
    struct output_stream *s = &o->stream[stream];
    if (s->given_up)
        s->unread += count;
    if (!count || s->dead)
        return;
    if (s->open_line && s->last_rank != rank)
        output_append(o, stream, "\n", 1);
    output_append(o, stream, data, count);
    s->open_line = ((const char *)data)[count - 1] != '\n';
    s->last_rank = rank;
}

int output_waits_for(const struct output *o)
{
    return o->first ? (int)o->first->stream : -1;
}

static void drop_front(struct output *o)
{
    struct output_piece *p = o->first;
    if (o->stream[p->stream].given_up)
        o->stream[p->stream].unread += p->count - p->done;
    o->length -= p->count - p->done;
    o->first = p->next;
    if (!o->first)
        o->end = &o->first;
    free(p);
}

/* A file takes any amount at once; of a pipe or terminal poll() promises only PIPE_BUF bytes. */
static size_t output_portion(unsigned stream)
{
    struct stat s;
    return fstat((int)stream, &s) == 0 && S_ISREG(s.st_mode) ? SSIZE_MAX : PIPE_BUF;
}

static bool output_is_writable(unsigned stream)
{
    struct pollfd p = {.fd = (int)stream, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

/* When the reader has closed its end, the ranks must notice it too; SIGPIPE ends most of them, as
 * without a launcher. A job that ends well nevertheless has lost output. A full disk does not
 * concern the ranks: the job goes on without output. */
static unsigned break_stream(struct output *o, unsigned stream, int error)
{
    o->stream[stream].dead = true;
    o->failed = true;
    o->stream[stream].is_closed = error == EPIPE;
    if (error == EPIPE)
        return stream;
    log_error("cannot write standard %s: %s", stream == STDOUT_FILENO ? "output" : "error",
              error == EBADF ? "it is closed" : strerror(error));
    return 0;
}

unsigned output_write(struct output *o)
{
    while (o->first) {
        struct output_piece *p = o->first;
        unsigned stream = p->stream;
        if (p->done == p->count || o->stream[stream].dead) {
            drop_front(o);
            continue;
        }
        if (!output_is_writable(stream))
            return 0;
        size_t count = p->count - p->done, most = output_portion(stream);
        ssize_t n = write((int)stream, p->data + p->done, count < most ? count : most);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return 0;
        if (n < 0)
            return break_stream(o, stream, errno);
        p->done += (size_t)n;
        o->length -= (size_t)n;
        o->written += (size_t)n;
    }
    return 0;
}

void output_discard(struct output *o)
{
    while (o->first)
        drop_front(o);
    o->stream[STDOUT_FILENO].dead = o->stream[STDERR_FILENO].dead = true;
    o->is_discarded = true;
}

void output_show(struct output *o, const char *line, size_t length)
{
    if (!o->is_discarded)
        output_add(o, STDERR_FILENO, UINT32_MAX, line, length);
    else if (output_is_writable(STDERR_FILENO) && write(STDERR_FILENO, line, length) < 0)
        o->failed = true;
}

unsigned output_give_up(struct output *o)
{
    unsigned stream = o->first->stream;
    o->stream[stream].dead = o->stream[stream].given_up = true;
    o->failed = true;
    output_write(o);
    return stream;
}
