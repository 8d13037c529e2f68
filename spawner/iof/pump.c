/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwards the ranks' standard files; see pump.h. Owns the pipes, takes no lock. */
#include "config.h"

#include "pump.h"

#include <errno.h>
#include <unistd.h>

/* The default size of a pipe: one read empties it. */
enum { PIPE_SIZE = 64 << 10 };

static void send_ready(struct pump *p, struct wire_channel *head, struct bytes *ready)
{
    if (ready->length)
        wire_send(head, WIRE_OUTPUT, p->stream, p->lines.rank, bytes_front(ready), ready->length);
    bytes_free(ready);
}

void pump_close(struct pump *p, struct wire_channel *head)
{
    struct bytes ready = {0};

    if (p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    lines_end(&p->lines, &ready);
    send_ready(p, head, &ready);
    bytes_free(&p->lines.held);
}

void pump_transfer(struct pump *p, struct wire_channel *head)
{
    uint8_t chunk[PIPE_SIZE];
    struct bytes ready = {0};

    ssize_t n = read(p->fd, chunk, sizeof(chunk));
    if (n > 0) {
        lines_put(&p->lines, chunk, (size_t)n, &ready);
        send_ready(p, head, &ready);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        pump_close(p, head);
    }
}

void feed_put(struct feed *f, const void *data, size_t count)
{
    if (f->fd < 0)
        return;
    if (!count)
        f->finished = true;
    bytes_append(&f->queue, data, count);
    feed_write(f);
}

void feed_write(struct feed *f)
{
    while (f->fd >= 0 && f->queue.length) {
        ssize_t n = write(f->fd, bytes_front(&f->queue), f->queue.length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            feed_close(f);
        else
            bytes_consume(&f->queue, (size_t)n);
    }
    if (f->finished && !f->queue.length)
        feed_close(f);
}

void feed_close(struct feed *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    bytes_free(&f->queue);
}
