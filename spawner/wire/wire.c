/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames on stream sockets; see wire.h. Owns the socket and queues of each channel, takes no lock.
 */
#include "config.h"

#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One read takes at most this much, so that one busy channel cannot starve the others. */
enum { READ_CHUNK = 256 << 10 };

void wire_put_number(uint8_t *p, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(n >> (8 * i));
}

uint32_t wire_number(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

const char *wire_name(uint16_t type)
{
    static const char *const names[WIRE_TYPES] = {[WIRE_HELLO] = "hello",
                                                  [WIRE_JOB] = "job",
                                                  [WIRE_GO] = "go",
                                                  [WIRE_SERVER] = "server",
                                                  [WIRE_REPORT] = "report",
                                                  [WIRE_FENCE] = "fence",
                                                  [WIRE_FENCE_DONE] = "fence_done",
                                                  [WIRE_LOST] = "lost",
                                                  [WIRE_KILL] = "kill",
                                                  [WIRE_ENDING] = "ending",
                                                  [WIRE_DONE] = "done",
                                                  [WIRE_LEFT] = "left",
                                                  [WIRE_ABORT] = "abort"};
    return type < WIRE_TYPES ? names[type] : NULL;
}

uint32_t wire_limit(uint16_t type)
{
    switch (type) {
    case WIRE_JOB:
    case WIRE_FENCE:
    case WIRE_FENCE_DONE:
    case WIRE_DMX_REPLY:
        return WIRE_MAX_BULK;
    default:
        return WIRE_MAX_PAYLOAD;
    }
}

void wire_open(struct wire_channel *c, int fd, uint32_t host)
{
    *c = (struct wire_channel){.fd = fd, .host = host};
}

void wire_close(struct wire_channel *c)
{
    if (c->fd >= 0)
        close(c->fd);
    bytes_free(&c->in);
    bytes_free(&c->out);
    *c = (struct wire_channel){.fd = -1, .ended = true};
}

void wire_send_host(struct wire_channel *c, uint32_t host, enum wire_type type, uint16_t aux,
                    uint32_t rank, const void *payload, size_t length)
{
    if (c->ended || c->deaf)
        return;
    uint8_t *h = bytes_reserve(&c->out, WIRE_HEADER + length);
    wire_put_number(h, (uint32_t)length);
    wire_put_number(h + 4, (uint32_t)type | (uint32_t)aux << 16);
    wire_put_number(h + 8, rank);
    wire_put_number(h + 12, host);
    if (length)
        memcpy(h + WIRE_HEADER, payload, length);
    bytes_commit(&c->out, WIRE_HEADER + length);
    c->frames++;
    c->kinds[type].frames++;
    c->kinds[type].bytes += length;
    c->moved += WIRE_HEADER + length;
}

void wire_send(struct wire_channel *c, enum wire_type type, uint16_t aux, uint32_t rank,
               const void *payload, size_t length)
{
    wire_send_host(c, c->host, type, aux, rank, payload, length);
}

void wire_relay(struct wire_channel *c, const struct wire_frame *f)
{
    wire_send_host(c, f->host, (enum wire_type)f->type, f->aux, f->rank, f->payload, f->length);
}

void wire_send_number(struct wire_channel *c, enum wire_type type, uint32_t rank, uint32_t number)
{
    uint8_t p[4];
    wire_put_number(p, number);
    wire_send(c, type, 0, rank, p, sizeof(p));
}

void wire_flush(struct wire_channel *c)
{
    while (c->out.length && !c->ended) {
        ssize_t n = send(c->fd, bytes_front(&c->out), c->out.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        /* Data that the peer sent before it went must still be read, and then the end of file. */
        c->deaf = n < 0 && (errno == EPIPE || errno == ECONNRESET);
        if (n < 0 && !c->deaf)
            c->ended = true;
        else
            bytes_consume(&c->out, c->deaf ? c->out.length : (size_t)n);
    }
}

void wire_send_now(struct wire_channel *c, enum wire_type type, uint16_t aux, uint32_t rank,
                   const void *payload, size_t length)
{
    wire_send(c, type, aux, rank, payload, length);
    for (wire_flush(c); c->out.length && !c->ended; wire_flush(c)) {
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        poll(&p, 1, -1);
    }
}

bool wire_fill(struct wire_channel *c)
{
    if (c->ended)
        return false;
    bytes_consume(&c->in, c->taken);
    c->taken = 0;
    uint8_t *space = bytes_reserve(&c->in, READ_CHUNK);
    ssize_t n = recv(c->fd, space, READ_CHUNK, MSG_DONTWAIT);
    if (n > 0)
        bytes_commit(&c->in, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        c->ended = true;
    return n > 0;
}

bool wire_next(struct wire_channel *c, struct wire_frame *frame)
{
    bytes_consume(&c->in, c->taken);
    c->taken = 0;
    if (c->in.length < WIRE_HEADER)
        return false;
    const uint8_t *h = bytes_front(&c->in);
    uint32_t length = wire_number(h), kind = wire_number(h + 4);
    uint16_t type = (uint16_t)kind;
    if (!type || type >= WIRE_TYPES || length > wire_limit(type)) {
        c->ended = c->broken = true;
        return false;
    }
    if (c->in.length < WIRE_HEADER + (size_t)length)
        return false;
    *frame = (struct wire_frame){.type = type,
                                 .aux = (uint16_t)(kind >> 16),
                                 .rank = wire_number(h + 8),
                                 .host = wire_number(h + 12),
                                 .length = length,
                                 .payload = h + WIRE_HEADER};
    c->taken = WIRE_HEADER + (size_t)length;
    c->frames++;
    c->kinds[type].frames++;
    c->kinds[type].bytes += length;
    c->moved += WIRE_HEADER + (size_t)length;
    return true;
}

short wire_poll_events(const struct wire_channel *c, bool want_input)
{
    short events = want_input ? POLLIN : 0;
    return c->out.length ? events | POLLOUT : events;
}
