/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conversations with the members of a fabric. They are found in the kernel's table of socket names;
 * a request is a datagram to the socket that claims a member's slot, and so is the reply. Any user
 * may bind such a name: a reply counts only when the kernel confirms that the right user sent it.
 * Owns the list of members that a caller passes in; one thread, no lock. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "contrib/softhca/wire/control.h"

/* A process on a busy machine may wait for a CPU that long; one that is stopped never answers. */
enum { patience_ms = 3000 };

/* ---- selection ---- */

static const char *fabric_of(const struct scope *s)
{
    const char *name = s->fabric ? s->fabric : getenv("SOFTHCA_FABRIC");

    return name && *name ? name : "default";
}

int scope_check(struct scope *s)
{
    long number;

    s->uid_number = geteuid();
    if (s->uid) {
        if (!option_number("--user", s->uid, 0, 0x7fffffff, &number))
            return EXIT_USAGE;
        s->uid_number = (unsigned)number;
    }
    if (s->pid) {
        if (!option_number("--pid", s->pid, 1, 0x7fffffff, &number))
            return EXIT_USAGE;
        s->pid_number = (unsigned)number;
    }
    return s->all && s->fabric ? log_error(EXIT_USAGE, "--all and --fabric exclude each other") : 0;
}

static bool in_scope(const struct scope *s, const struct shca_name *n)
{
    char wanted[SHCA_NAME];

    if (s->pid && n->pid != s->pid_number)
        return false;
    if (s->all)
        return n->uid == s->uid_number || (geteuid() == 0 && !s->uid);
    shca_name_fabric(fabric_of(s), s->uid_number, wanted);
    return strcmp(wanted, n->fabric) == 0;
}

static bool known(const struct members *m, const struct shca_name *n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i].name.slot == n->slot && m->at[i].name.pid == n->pid &&
            strcmp(m->at[i].name.fabric, n->fabric) == 0)
            return true;
    return false;
}

static void members_add(struct members *m, const struct shca_name *n)
{
    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        m->at = realloc(m->at, m->room * sizeof *m->at);
        if (!m->at)
            exit(log_error(EXIT_FAILED, "out of memory"));
    }
    m->at[m->n++] = (struct member){.name = *n};
}

int members_find(const struct scope *s, struct members *m)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];

    if (!f)
        return log_error(EXIT_FAILED, "/proc/net/unix: %s", strerror(errno));
    while (fgets(line, sizeof line, f)) {
        struct shca_name n;

        if (shca_name_parse(line, &n) && in_scope(s, &n) && !known(m, &n))
            members_add(m, &n);
    }
    fclose(f);
    return 0;
}

void members_free(struct members *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->at[i].reply);
    free(m->at);
    memset(m, 0, sizeof *m);
}

int members_none(const struct scope *s)
{
    if (s->pid)
        return log_error(EXIT_FAILED, "process %u is not on fabric '%s' of user %u", s->pid_number,
                         fabric_of(s), s->uid_number);
    if (s->all)
        return log_error(EXIT_FAILED, "no process is on any fabric; softhca run starts one");
    return log_error(
        EXIT_FAILED,
        "no process is on fabric '%s' of user %u; softhca list --all names others, and "
        "SOFTHCA_DOWN and SOFTHCA_FAULT (softhca run --down, --fault) hold from the "
        "start",
        fabric_of(s), s->uid_number);
}

size_t members_silent(const struct members *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->at[i].silent) {
            log_error(0, "process %u (slot %u) did not answer within 3 seconds", m->at[i].name.pid,
                      m->at[i].name.slot);
            n++;
        }
    return n;
}

/* ---- requests and replies ---- */

static socklen_t address_of(const struct member *m, struct sockaddr_un *a)
{
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    shca_name_claim(a->sun_path + 1, sizeof a->sun_path - 1, m->name.fabric, m->name.slot);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

static int open_socket(void)
{
    struct sockaddr_un me = {.sun_family = AF_UNIX};
    int yes = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    /* Only the family: the kernel chooses a name, to which the replies go. */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&me, sizeof(sa_family_t)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static struct member *sender_of(struct members *m, const struct sockaddr_un *from, socklen_t length)
{
    for (size_t i = 0; i < m->n; i++) {
        struct sockaddr_un a;

        if (address_of(&m->at[i], &a) == length &&
            memcmp(a.sun_path, from->sun_path, length - offsetof(struct sockaddr_un, sun_path)) ==
                0)
            return &m->at[i];
    }
    return NULL;
}

static bool trusted(struct msghdr *h, const struct member *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred cred;

            memcpy(&cred, CMSG_DATA(c), sizeof cred);
            return cred.pid != 0 && (cred.uid == m->name.uid || cred.uid == 0);
        }
    return false;
}

/* Reads one reply; false if there is none. */
static bool take_answer(int fd, struct members *m)
{
    static char text[SHCA_REPLY_MAX + 1];
    union {
        char room[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct sockaddr_un from;
    struct iovec iov = {text, SHCA_REPLY_MAX};
    struct msghdr h = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    struct member *who;

    if (n < 0)
        return false;
    text[n] = 0;
    who = sender_of(m, &from, h.msg_namelen);
    if (who && !who->reply && trusted(&h, who))
        who->reply = strdup(text);
    return true;
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t waiting(const struct members *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        n += m->at[i].asked && !m->at[i].reply && !m->at[i].gone && !m->at[i].silent;
    return n;
}

static void ask_one(int fd, struct member *m, const char *request)
{
    struct sockaddr_un to;
    socklen_t length = address_of(m, &to);

    m->asked = true;
    if (sendto(fd, request, strlen(request), MSG_NOSIGNAL, (struct sockaddr *)&to, length) < 0)
        m->gone = errno == ECONNREFUSED || errno == ENOENT;
}

void members_ask(struct members *m, const char *request)
{
    long until = now_ms() + patience_ms;
    struct pollfd p = {.fd = open_socket(), .events = POLLIN};

    if (p.fd < 0)
        exit(log_error(EXIT_FAILED, "cannot make a socket: %s", strerror(errno)));
    for (size_t i = 0; i < m->n; i++)
        if (!m->at[i].asked) {
            ask_one(p.fd, &m->at[i], request);
            /* So that replies do not fill the socket while the other requests are sent. */
            while (take_answer(p.fd, m))
                ;
        }
    while (waiting(m) > 0) {
        long left = until - now_ms();

        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            break;
        take_answer(p.fd, m);
    }
    for (size_t i = 0; i < m->n; i++)
        m->at[i].silent = !m->at[i].reply && !m->at[i].gone;
    close(p.fd);
}

/* ---- requests to all members ---- */

static size_t count_answers(const struct members *m, size_t *errors)
{
    size_t obeyed = 0;

    *errors = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct member *one = &m->at[i];

        if (!one->reply)
            continue;
        if (strncmp(one->reply, "ok", 2) == 0) {
            obeyed++;
            continue;
        }
        ++*errors;
        log_error(0, "process %u: %s", one->name.pid,
                  one->reply + (strncmp(one->reply, "error ", 6) == 0 ? 6 : 0));
    }
    return obeyed;
}

int members_send(const struct scope *s, const char *request, struct members *m, size_t *obeyed)
{
    size_t before, errors, silent;

    /* A process that joins copies the state of a member after it has published its name. So once a
     * search finds no new member, all have the change, and so will any that join later. */
    do {
        before = m->n;
        if (members_find(s, m) != 0)
            return EXIT_FAILED;
        members_ask(m, request);
    } while (m->n > before);
    *obeyed = count_answers(m, &errors);
    silent = members_silent(m);
    if (*obeyed + errors + silent == 0)
        return members_none(s);
    return errors + silent > 0 ? EXIT_FAILED : 0;
}
