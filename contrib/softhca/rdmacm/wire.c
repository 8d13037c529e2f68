/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Port numbers and messages. A port number is a Unix socket with an abstract name made of the
 * fabric, the port space, the address and the number: the kernel lets only one exist, queues the
 * connections to it, and drops it with the process. Owns nothing; the caller holds shca_cm_lock. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/registry_name.h"
#include "rdmacm/rdmacm.h"

static socklen_t wire_name(struct sockaddr_un *a, bool datagram, uint32_t ip, uint16_t port)
{
    char word[32], name[108];
    size_t n;

    snprintf(word, sizeof word, "cm%c%08x.%u", datagram ? 'u' : 't', ip, port);
    shca_name_word(name, sizeof name, shca_config.fabric, word);
    n = strlen(name);
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path + 1, name, n); /* a leading NUL: the abstract name space */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int shca_cm_wire_claim(struct shca_cm_socket *s, bool datagram, uint32_t ip, uint16_t port)
{
    struct sockaddr_un a;
    socklen_t n = wire_name(&a, datagram, ip, port);
    int e;

    s->ip = ip;
    s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0)
        return errno;
    if (bind(s->fd, (struct sockaddr *)&a, n) == 0)
        return 0;
    e = errno;
    shca_cm_wire_close(s);
    return e;
}

int shca_cm_wire_listen(struct shca_cm_socket *s)
{
    /* Requests are taken out of this queue at once and wait in their listener's. */
    return listen(s->fd, 128) == 0 ? 0 : errno;
}

int shca_cm_wire_connect(struct shca_cm_socket *s, bool datagram, uint32_t ip, uint16_t port)
{
    struct sockaddr_un a;
    socklen_t n = wire_name(&a, datagram, ip, port);

    return connect(s->fd, (struct sockaddr *)&a, n) == 0 ? 0 : errno;
}

/* Any user may connect to an abstract name: connections of other users are ignored. */
static bool wire_trusted(int fd)
{
    struct ucred c;
    socklen_t n = sizeof c;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == geteuid();
}

int shca_cm_wire_accept(struct shca_cm_socket *listener, struct shca_cm_socket *out)
{
    out->ip = listener->ip;
    out->fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (out->fd < 0)
        return errno;
    if (wire_trusted(out->fd))
        return 0;
    shca_cm_wire_close(out);
    return EPERM;
}

bool shca_cm_wire_send(struct shca_cm_socket *s, const struct shca_cm_message *m)
{
    return s->fd >= 0 && send(s->fd, m, sizeof *m, MSG_NOSIGNAL) == (ssize_t)sizeof *m;
}

int shca_cm_wire_receive(struct shca_cm_socket *s, struct shca_cm_message *m)
{
    ssize_t n = recv(s->fd, m, sizeof *m, 0);

    /* An end that closed without having read everything leaves this error in front of what it had
     * sent; it is reported once. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(s->fd, m, sizeof *m, 0);
    if (n == (ssize_t)sizeof *m && m->length <= SHCA_CM_DATA)
        return 1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

bool shca_cm_wire_gone(const struct shca_cm_socket *s)
{
    struct pollfd p = {.fd = s->fd};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

void shca_cm_wire_close(struct shca_cm_socket *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
