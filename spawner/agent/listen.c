/* SPDX-License-Identifier: BSD-3-Clause */
/* The port that guards call back; see listen.h. */
#include "config.h"

#include "listen.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An honest guard answers within a round trip; its host may be busy. */
enum { PROOF_MS = 10000 };

enum { LISTEN_QUEUE = 256 };

union listen_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_size(const union listen_address *a)
{
    return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* From an address in digits; false for a name. */
static bool parse_address(const char *text, union listen_address *a)
{
    *a = (union listen_address){0};
    if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
        a->any.sa_family = AF_INET;
        return true;
    }
    a->any.sa_family = AF_INET6;
    return inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1;
}

static bool open_on(struct listener *l, const union listen_address *a)
{
    int no = 0, fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    union listen_address bound;
    socklen_t size = sizeof(bound);

    if (fd < 0)
        return false;
    if (a->any.sa_family == AF_INET6) /* one socket for IPv4, too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, &a->any, address_size(a)) != 0 || listen(fd, LISTEN_QUEUE) != 0 ||
        getsockname(fd, &bound.any, &size) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return false;
    }
    l->fd = fd;
    l->port = ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
    return true;
}

bool listen_open(struct listener *l, const struct auth_secret *secret, const char *master)
{
    union listen_address a;
    union listen_address any6 = {.v6 = {.sin6_family = AF_INET6}};
    union listen_address any4 = {.v4 = {.sin_family = AF_INET}};

    *l = (struct listener){.fd = -1, .secret = secret};
    for (int i = 0; i < LISTEN_PENDING; i++)
        l->pending[i].fd = -1;
    if (parse_address(master, &a) && open_on(l, &a))
        return true;
    return open_on(l, &any6) || open_on(l, &any4);
}

static void drop(struct auth *a)
{
    close(a->fd);
    a->fd = -1;
}

void listen_close(struct listener *l)
{
    for (int i = 0; i < LISTEN_PENDING; i++)
        if (l->pending[i].fd >= 0)
            drop(&l->pending[i]);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* A link-local address is valid on its own link only, and the interface name that belongs to it
 * differs by host. */
static bool is_useful(const struct ifaddrs *i, bool loopback)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || loopback != !!(i->ifa_flags & IFF_LOOPBACK))
        return false;
    const union listen_address *a = (const void *)i->ifa_addr;
    return a->any.sa_family == AF_INET ||
           (a->any.sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr));
}

/* Appends one address to the list; false if it does not fit. */
static bool append_address(char *text, size_t size, const char *digits)
{
    size_t used = strlen(text);
    bool six = strchr(digits, ':') != NULL;
    int n = snprintf(text + used, size - used, "%s%s%s%s", used ? "," : "", six ? "[" : "", digits,
                     six ? "]" : "");
    if (n > 0 && (size_t)n < size - used)
        return true;
    text[used] = 0;
    return false;
}

static void append_own(char *text, size_t size, const struct ifaddrs *all, bool loopback)
{
    char digits[INET6_ADDRSTRLEN];

    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!is_useful(i, loopback))
            continue;
        const union listen_address *a = (const void *)i->ifa_addr;
        const void *number = a->any.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
                                                         : (const void *)&a->v6.sin6_addr;
        if (inet_ntop(a->any.sa_family, number, digits, sizeof(digits)))
            append_address(text, size, digits); /* of very many addresses the first are used */
    }
}

bool listen_addresses(const struct listener *l, const char *master, char *text, size_t size)
{
    enum { PORT_ROOM = 8 };
    struct ifaddrs *all = NULL;

    if (size <= PORT_ROOM)
        return false;
    text[0] = 0;
    if (*master) {
        if (!append_address(text, size - PORT_ROOM, master))
            return false;
    } else if (getifaddrs(&all) == 0) {
        append_own(text, size - PORT_ROOM, all, false);
        append_own(text, size - PORT_ROOM, all, true);
        freeifaddrs(all);
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, ":%u", l->port);
    return used > 0;
}

nfds_t listen_poll_fds(const struct listener *l, struct pollfd *p)
{
    nfds_t n = 0;
    if (l->fd < 0)
        return 0;
    p[n++] = (struct pollfd){l->fd, POLLIN, 0};
    for (int i = 0; i < LISTEN_PENDING; i++) {
        const struct auth *a = &l->pending[i];
        if (a->fd >= 0 && a->state == AUTH_GOING)
            p[n++] = (struct pollfd){a->fd, auth_poll_events(a), 0};
    }
    return n;
}

int64_t listen_deadline(const struct listener *l)
{
    int64_t first = CLOCK_NEVER;
    for (int i = 0; i < LISTEN_PENDING; i++)
        if (l->pending[i].fd >= 0 && l->pending[i].state == AUTH_GOING)
            first = clock_earlier(first, l->pending[i].deadline);
    return first;
}

static void drop_foreign(struct listener *l, struct auth *a, const char *why)
{
    l->foreign++;
    log_verbose(2, "a connection to port %u was dropped: %s", l->port, why);
    drop(a);
}

/* The pending connection whose authentication has taken longest. */
static struct auth *oldest_unproven(struct listener *l)
{
    struct auth *oldest = NULL;
    for (int i = 0; i < LISTEN_PENDING; i++) {
        struct auth *a = &l->pending[i];
        if (a->fd >= 0 && a->state == AUTH_GOING && (!oldest || a->deadline < oldest->deadline))
            oldest = a;
    }
    return oldest;
}

static struct auth *free_entry(struct listener *l)
{
    for (int i = 0; i < LISTEN_PENDING; i++)
        if (l->pending[i].fd < 0)
            return &l->pending[i];
    struct auth *oldest = oldest_unproven(l);
    if (oldest)
        drop_foreign(l, oldest, "there are too many others");
    return oldest;
}

/* Foreign connections may have used up this process's file descriptors. */
static int accept_or_make_room(struct listener *l)
{
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 || errno != EMFILE)
        return fd;
    struct auth *oldest = oldest_unproven(l);
    if (!oldest)
        return -1;
    drop_foreign(l, oldest, "too many files are open");
    return accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void listen_accept(struct listener *l)
{
    int yes = 1;
    for (int i = 0; i < LISTEN_PENDING; i++) {
        int fd = accept_or_make_room(l);
        if (fd < 0)
            return;
        struct auth *a = free_entry(l);
        if (!a) { /* all pending connections are authenticated and wait for listen_next() */
            close(fd);
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        auth_accept(a, fd, l->secret, PROOF_MS);
    }
}

void listen_serve(struct listener *l)
{
    if (l->fd < 0)
        return;
    listen_accept(l);
    for (int i = 0; i < LISTEN_PENDING; i++) {
        struct auth *a = &l->pending[i];
        if (a->fd >= 0 && auth_step(a) == AUTH_REFUSED)
            drop_foreign(l, a, a->why);
    }
}

bool listen_next(struct listener *l, uint32_t *host, enum auth_stream *stream, int *fd)
{
    for (int i = 0; i < LISTEN_PENDING; i++) {
        struct auth *a = &l->pending[i];
        if (a->fd < 0 || a->state != AUTH_DONE)
            continue;
        *host = a->host;
        *stream = (enum auth_stream)a->stream;
        *fd = a->fd;
        a->fd = -1;
        return true;
    }
    return false;
}
