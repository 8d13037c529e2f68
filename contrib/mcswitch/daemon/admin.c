/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The administrator's socket; see admin.h. The answer to a line is text that ends with a line "ok"
 * or "error: ...", after which the connection is closed. */
#include "config.h"

#include "daemon/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/number.h"
#include "daemon/group.h"
#include "daemon/port.h"
#include "daemon/stat.h"

enum { sessions_most = 8, patience_s = 5, line_most = 64 };

struct session {
    struct mcd_source source;
    uint64_t deadline;
    size_t held, written, length;
    char line[line_most];
    char *text; /* the answer; NULL: the line is not complete */
};

static struct mcd_source listener = {.fd = -1};
static struct session sessions[sessions_most];
static char own_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

static void end_session(struct session *s)
{
    mcd_loop_close(&s->source);
    free(s->text);
    s->text = NULL;
}

/* ---- commands ---- */

/* A number from 1 to the most groups; 0: none. */
static uint32_t group_number(const char *text)
{
    uint64_t n;

    return tk_number_digits(text, 1, mcd_group_most(), &n) ? (uint32_t)n : 0;
}

static void set_loss(FILE *to, const char *text)
{
    uint32_t per_million;

    if (!mcd_port_percent(text, &per_million)) {
        fprintf(to, "error: '%s' is not a number from 0 to 90\n", text);
        return;
    }
    mcd_port_lose(per_million, mcd_now());
    fprintf(to, "ok\n");
}

static void obey(FILE *to, const char *line)
{
    const char *argument = strchr(line, ' ');
    uint32_t number = argument ? group_number(argument + 1) : 0;

    if (strncmp(line, "loss ", 5) == 0) {
        set_loss(to, line + 5);
        return;
    }
    if (strcmp(line, "stat") == 0) {
        mcd_stat_print(to);
        mcd_group_print(to, 0);
    } else if (argument && number == 0) {
        fprintf(to, "error: '%s' is not the number of a group, 1 to %u\n", argument + 1,
                mcd_group_most());
        return;
    } else if (strncmp(line, "stat ", 5) == 0) {
        mcd_group_print(to, number);
    } else if (strncmp(line, "destroy ", 8) == 0) {
        if (!mcd_group_end(number)) {
            fprintf(to, "error: there is no group %u\n", number);
            return;
        }
    } else {
        fprintf(to, "error: '%s' is none of stat, stat GROUP, destroy GROUP and loss PERCENT\n",
                line);
        return;
    }
    fprintf(to, "ok\n");
}

static void answer(struct session *s)
{
    FILE *to = open_memstream(&s->text, &s->length);

    if (!to) {
        end_session(s);
        return;
    }
    obey(to, s->line);
    fclose(to);
    mcd_loop_change(&s->source, EPOLLOUT);
}

/* ---- sessions ---- */

static void write_on(struct session *s)
{
    ssize_t n = send(s->source.fd, s->text + s->written, s->length - s->written,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0)
        s->written += (size_t)n;
    if (s->written == s->length || (n < 0 && errno != EAGAIN && errno != EINTR))
        end_session(s);
}

static void ready(struct mcd_source *source, uint32_t events)
{
    struct session *s = (struct session *)(void *)source;
    ssize_t n;

    (void)events;
    if (s->text) {
        write_on(s);
        return;
    }
    n = recv(s->source.fd, s->line + s->held, sizeof s->line - 1 - s->held, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_session(s);
        return;
    }
    s->held += (size_t)n;
    s->line[s->held] = 0;
    if (strlen(s->line) != s->held || (s->held == sizeof s->line - 1 && !strchr(s->line, '\n'))) {
        end_session(s);
        return;
    }
    if (strchr(s->line, '\n')) {
        *strchr(s->line, '\n') = 0;
        answer(s);
    }
}

static void accept_ready(struct mcd_source *source, uint32_t events)
{
    int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)events;
    for (unsigned i = 0; fd >= 0 && i < sessions_most; i++) {
        struct session *s = &sessions[i];

        if (s->source.fd >= 0)
            continue;
        *s = (struct session){.source = {.fd = fd, .ready = ready},
                              .deadline = mcd_now() + (uint64_t)patience_s * 1000000000};
        if (!mcd_loop_add(&s->source, EPOLLIN))
            end_session(s);
        return;
    }
    if (fd >= 0)
        close(fd);
}

void mcd_admin_tick(uint64_t now)
{
    for (unsigned i = 0; i < sessions_most && listener.fd >= 0; i++)
        if (sessions[i].source.fd >= 0 && now > sessions[i].deadline)
            end_session(&sessions[i]);
}

/* ---- opening ---- */

static int dial(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool report_error(const char *path, const char *why)
{
    fprintf(stderr, "mcswitchd: --socket %s: %s\n", path, why);
    return false;
}

/* Removes the socket of a killed switch, on which no process listens. */
static bool remove_stale(const char *path)
{
    struct stat s;
    int fd;

    if (lstat(path, &s) != 0)
        return true;
    if (!S_ISSOCK(s.st_mode))
        return report_error(path, "something else than a socket is there");
    fd = dial(path);
    if (fd >= 0) {
        close(fd);
        return report_error(path, "another switch uses it");
    }
    return unlink(path) == 0 || report_error(path, strerror(errno));
}

bool mcd_admin_open(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    mode_t mask;
    int bound;

    for (unsigned i = 0; i < sessions_most; i++)
        sessions[i].source.fd = -1;
    if (!*path || strlen(path) >= sizeof at.sun_path) {
        mcd_status = 2;
        return report_error(path, "a path has 1 to 107 bytes");
    }
    if (!remove_stale(path))
        return false;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    listener =
        (struct mcd_source){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                            .ready = accept_ready};
    /* Creates the socket with this mode: a chmod would come too late. */
    mask = umask(0177);
    bound = bind(listener.fd, (struct sockaddr *)&at, sizeof at);
    umask(mask);
    if (bound != 0)
        return report_error(path, strerror(errno));
    memcpy(own_path, at.sun_path, sizeof own_path);
    return (listen(listener.fd, sessions_most) == 0 && mcd_loop_add(&listener, EPOLLIN)) ||
           report_error(path, strerror(errno));
}

void mcd_admin_close(void)
{
    if (listener.fd >= 0)
        for (unsigned i = 0; i < sessions_most; i++)
            end_session(&sessions[i]);
    mcd_loop_close(&listener);
    if (own_path[0])
        unlink(own_path);
}

/* ---- the other end ---- */

static bool ends_well(const char *text, size_t length)
{
    return length >= 3 && memcmp(text + length - 3, "ok\n", 3) == 0;
}

int mcd_admin_ask(const char *path, const char *line)
{
    struct timeval limit = {.tv_sec = 2 * patience_s};
    char text[65536];
    size_t length = 0;
    ssize_t n;
    int fd = dial(path);

    if (fd < 0) {
        fprintf(stderr, "mcswitchd: no switch answers at %s: %s\n", path, strerror(errno));
        return 1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    snprintf(text, sizeof text, "%s\n", line);
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) {
        fprintf(stderr, "mcswitchd: no switch answers at %s: %s\n", path, strerror(errno));
        close(fd);
        return 1;
    }
    while ((n = recv(fd, text + length, sizeof text - length, 0)) > 0) {
        length += (size_t)n;
        if (length > sizeof text / 2) { /* keeps the last line in one piece */
            fwrite(text, 1, length - 256, stdout);
            memmove(text, text + length - 256, 256);
            length = 256;
        }
    }
    close(fd);
    if (ends_well(text, length)) {
        fwrite(text, 1, length - 3, stdout);
        return 0;
    }
    fwrite(text, 1, length, stderr);
    if (length == 0)
        fprintf(stderr, "mcswitchd: the switch at %s does not answer\n", path);
    return 1;
}
