/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling back; see dial.h. */
#include "config.h"

#include "dial.h"
#include "spawner/util/launcher_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process that answers but does not authenticate itself in this time is not part of the job: it
 * only has the same address: a bridge, for example, may have one address on both hosts. */
enum { PROOF_MS = 10000 };

/* A refusal may be due to a full queue: the connection is tried again a few times. */
enum { ROUNDS = 3, PAUSE_MS = 100 };

/* One round: a connection for each address, -1 when it has failed. */
struct dial_round {
    int fd[DIAL_ADDRESSES];
    bool is_connected[DIAL_ADDRESSES];
    size_t open;
    char why[200];
};

static bool add_addresses(struct dial *d, const char *host, const char *port)
{
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *i = found; i && d->count < DIAL_ADDRESSES; i = i->ai_next)
        if (i->ai_addrlen <= sizeof(*d->address))
            memcpy(&d->address[d->count++], i->ai_addr, i->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

/* Removes brackets. */
static char *without_brackets(char *text)
{
    size_t n = strlen(text);
    if (n < 2 || text[0] != '[' || text[n - 1] != ']')
        return text;
    text[n - 1] = 0;
    return text + 1;
}

bool dial_parse(struct dial *d, const char *text, const char *origin, char *why, size_t size)
{
    char copy[4096], *rest = NULL;
    char *port = strlen(text) < sizeof(copy) ? strrchr(strcpy(copy, text), ':') : NULL;

    d->count = 0;
    if (!port || !port[1] || port[strspn(port + 1, "0123456789") + 1] || port == copy) {
        snprintf(why, size, "'%.200s' is no list of addresses with a port", text);
        return false;
    }
    *port++ = 0;
    for (char *a = strtok_r(copy, ",", &rest); a; a = strtok_r(NULL, ",", &rest))
        if (!strcmp(a, "@"))
            (void)(origin && add_addresses(d, origin, port));
        else if (!add_addresses(d, without_brackets(a), port))
            snprintf(why, size, "cannot find the address of '%.200s' (GASNET_MASTERIP)", a);
    return d->count > 0;
}

static void round_fail(struct dial_round *r, size_t i, const char *why)
{
    close(r->fd[i]);
    r->fd[i] = -1;
    r->open--;
    snprintf(r->why, sizeof(r->why), "%s", why);
}

static void round_open(struct dial_round *r, const struct dial *d)
{
    *r = (struct dial_round){.open = 0};
    for (size_t i = 0; i < d->count; i++) {
        const struct sockaddr_storage *a = &d->address[i];
        socklen_t n =
            a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        r->fd[i] = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (r->fd[i] < 0)
            continue;
        r->open++;
        if (connect(r->fd[i], (const struct sockaddr *)a, n) != 0 && errno != EINPROGRESS)
            round_fail(r, i, strerror(errno));
    }
}

static void round_close(struct dial_round *r, const struct dial *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
}

/* Whether the process that we report to has gone. Data that it may still send there is not for us.
 */
static bool lifeline_ended(const struct dial *d, short events)
{
    char ignored[64];
    return events && read(d->lifeline, ignored, sizeof(ignored)) <= 0;
}

/* Does the whole proof on one connection; the others wait meanwhile, so that the other side never
 * sees two of them proven. */
static bool prove(const struct dial *d, struct dial_round *r, size_t i, enum auth_stream stream)
{
    int64_t left = d->deadline - clock_ms();
    struct auth a;

    auth_dial(&a, r->fd[i], d->secret, d->host, stream,
              left < PROOF_MS ? (uint32_t)(left > 0 ? left : 0) : PROOF_MS);
    while (auth_step(&a) == AUTH_GOING) {
        struct pollfd p = {a.fd, auth_poll_events(&a), 0};
        poll(&p, 1, clock_poll_timeout(a.deadline));
    }
    if (a.state == AUTH_DONE)
        return true;
    round_fail(r, i, a.why);
    return false;
}

/* Serves a connection that poll() reports; true: it has authenticated itself. The peer sends the
 * first byte, of the greeting, so a silent connection costs no time. */
static bool round_serve(const struct dial *d, struct dial_round *r, size_t i, short events,
                        enum auth_stream stream)
{
    int error = 0;
    socklen_t n = sizeof(error);

    if (!r->is_connected[i]) {
        getsockopt(r->fd[i], SOL_SOCKET, SO_ERROR, &error, &n);
        if (error) {
            round_fail(r, i, strerror(error));
            return false;
        }
        r->is_connected[i] = true;
    }
    return (events & (POLLIN | POLLHUP)) && prove(d, r, i, stream);
}

/* Waits until one connection has proved itself and returns its number, or -1. */
static int round_wait(const struct dial *d, struct dial_round *r, enum auth_stream stream,
                      bool *is_abandoned)
{
    struct pollfd p[DIAL_ADDRESSES + 1];

    while (r->open && clock_ms() < d->deadline) {
        for (size_t i = 0; i < d->count; i++)
            p[i] = (struct pollfd){r->fd[i], r->is_connected[i] ? POLLIN : POLLOUT, 0};
        p[d->count] = (struct pollfd){d->lifeline, POLLIN, 0};
        if (poll(p, (nfds_t)d->count + 1, clock_poll_timeout(d->deadline)) <= 0)
            continue;
        if ((*is_abandoned = lifeline_ended(d, p[d->count].revents)))
            return -1;
        for (size_t i = 0; i < d->count; i++)
            if (r->fd[i] >= 0 && p[i].revents && round_serve(d, r, i, p[i].revents, stream))
                return (int)i;
    }
    if (r->open)
        snprintf(r->why, sizeof(r->why), "%s", strerror(ETIMEDOUT));
    return -1;
}

int dial_connect(struct dial *d, enum auth_stream stream, char *why, size_t size)
{
    struct dial_round r = {.why = ""};
    bool is_abandoned = false;
    int yes = 1;

    for (int n = 0; n < ROUNDS; n++) {
        if (n)
            poll(NULL, 0, PAUSE_MS);
        round_open(&r, d);
        int chosen = round_wait(d, &r, stream, &is_abandoned);
        int fd = chosen < 0 ? -1 : r.fd[chosen];
        if (fd >= 0) {
            r.fd[chosen] = -1;
            d->address[0] = d->address[chosen];
        }
        round_close(&r, d);
        if (fd >= 0) {
            d->count = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
            return fd;
        }
        if (is_abandoned || clock_ms() >= d->deadline)
            break;
    }
    snprintf(why, size, "%s", is_abandoned ? "" : r.why);
    return -1;
}
