/* SPDX-License-Identifier: BSD-3-Clause */
/* See serve.h. One thread; every descriptor is polled, none is waited for. A client that is slow,
 * sends too much or takes too long is closed. Who owns the other end of a connection is asked from
 * the kernel before anything of it is read (spawner/server/owner.h). */
#include "config.h"

#include "contrib/report/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "contrib/report/http.h"
#include "spawner/server/owner.h"

enum { CLIENTS_MAX = 16, RECORD_MAX = 1 << 30 };

/* Milliseconds: for a request, for reading the answer, and for the end of a connection: closing a
 * socket with unread bytes would reset it before the answer is read. */
enum { REQUEST_MS = 5000, ANSWER_MS = 20000, LINGER_MS = 1000, MS = 1000000 };

enum client_phase { CLIENT_FREE, CLIENT_ASKS, CLIENT_TAKES, CLIENT_LINGERS };

struct client {
    int fd;
    enum client_phase phase;
    uint64_t deadline;
    char *request; /* HTTP_REQUEST_MAX bytes */
    size_t used;
    char *answer;
    size_t length, sent;
};

struct record {
    char *text;
    size_t used, size;
};

struct server {
    const struct serve_source *source;
    struct http_site site;
    int listener;
    struct client clients[CLIENTS_MAX];
    struct record record;
    bool is_over; /* no records come any more */
    bool has_refused;
};

static int fail_for_memory(void)
{
    fprintf(stderr, "gasnet_report: --serve: no memory\n");
    return EXIT_FAILURE;
}

/* ---- clients */

static void drop(struct client *c)
{
    close(c->fd);
    free(c->request);
    free(c->answer);
    *c = (struct client){.fd = -1};
}

static void begin_phase(struct client *c, enum client_phase phase, uint64_t ms)
{
    c->phase = phase;
    c->deadline = tk_now() + ms * MS;
}

static struct client *find_free(struct server *s)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (s->clients[i].phase == CLIENT_FREE)
            return &s->clients[i];
    return NULL;
}

/* root may read the memory of the job anyway. */
static bool is_this_user(int fd, uid_t *uid)
{
    return owner_of_peer(fd, uid) && (*uid == geteuid() || *uid == 0);
}

static void accept_client(struct server *s)
{
    struct client *c = find_free(s);
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uid_t uid = (uid_t)-1;
    if (fd < 0)
        return;
    bool is_welcome = c && is_this_user(fd, &uid);
    if (is_welcome)
        c->request = malloc(HTTP_REQUEST_MAX);
    if (is_welcome && c->request) {
        c->fd = fd;
        begin_phase(c, CLIENT_ASKS, REQUEST_MS);
        return;
    }
    close(fd);
    if (is_welcome || uid == (uid_t)-1 || s->has_refused)
        return;
    s->has_refused = true;
    fprintf(stderr,
            "gasnet_report: --serve: refused a connection of user %u; further ones are refused "
            "silently\n",
            (unsigned)uid);
}

static void answer(const struct server *s, struct client *c, enum http_status status,
                   const char *type, const char *body, size_t length)
{
    char head[HTTP_HEAD_MAX];
    size_t n = http_head(status, type, length,
                         status == HTTP_OK ? s->source->policy : "default-src 'none'", head);
    c->answer = n ? malloc(n + length) : NULL;
    if (!c->answer) {
        drop(c);
        return;
    }
    memcpy(c->answer, head, n);
    memcpy(c->answer + n, body, length);
    c->length = n + length;
    begin_phase(c, CLIENT_TAKES, ANSWER_MS);
}

static void answer_text(const struct server *s, struct client *c, enum http_status status)
{
    char line[100];
    int n = snprintf(line, sizeof(line), "%s\n", http_reason(status));
    answer(s, c, status, "text/plain; charset=utf-8", line, (size_t)n);
}

static void answer_data(const struct server *s, struct client *c)
{
    size_t length = 0;
    char *data = s->source->data(s->source->owner, &length);
    if (data)
        answer(s, c, HTTP_OK, "application/json", data, length);
    else
        answer_text(s, c, HTTP_NO_DATA);
    free(data);
}

static void judge(const struct server *s, struct client *c)
{
    struct http_request request;
    const char *rest = "";
    enum http_status status = http_parse(c->request, c->used, &request);
    if (status == HTTP_UNFINISHED)
        return;
    if (status == HTTP_OK)
        status = http_judge(&s->site, &request, &rest);
    if (status != HTTP_OK)
        answer_text(s, c, status);
    else if (!*rest)
        answer(s, c, HTTP_OK, "text/html; charset=utf-8", s->source->page, s->source->length);
    else if (!strcmp(rest, "data.json"))
        answer_data(s, c);
    else
        answer_text(s, c, HTTP_NOT_FOUND);
}

static bool is_later(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void read_request(const struct server *s, struct client *c)
{
    ssize_t n = read(c->fd, c->request + c->used, HTTP_REQUEST_MAX - c->used);
    if (n > 0) {
        c->used += (size_t)n;
        judge(s, c);
    } else if (!is_later(n)) {
        drop(c);
    }
}

static void write_answer(struct client *c)
{
    ssize_t n = send(c->fd, c->answer + c->sent, c->length - c->sent, MSG_NOSIGNAL);
    if (n < 0 && !is_later(n)) {
        drop(c);
        return;
    }
    c->sent += n > 0 ? (size_t)n : 0;
    if (c->sent < c->length)
        return;
    shutdown(c->fd, SHUT_WR);
    begin_phase(c, CLIENT_LINGERS, LINGER_MS);
}

static void discard(struct client *c)
{
    char bytes[4096];
    ssize_t n = read(c->fd, bytes, sizeof(bytes));
    if (n <= 0 && !is_later(n))
        drop(c);
}

static void serve_client(const struct server *s, struct client *c)
{
    if (c->phase == CLIENT_ASKS)
        read_request(s, c);
    else if (c->phase == CLIENT_TAKES)
        write_answer(c);
    else if (c->phase == CLIENT_LINGERS)
        discard(c);
}

/* ---- records */

static bool take_lines(struct server *s)
{
    struct record *r = &s->record;
    char *at = r->text, *end = r->text + r->used, *newline;
    bool is_good = true;
    while (is_good && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        is_good = s->source->take(s->source->owner, at, (size_t)(newline - at));
        at = newline + 1;
    }
    r->used = (size_t)(end - at);
    memmove(r->text, at, r->used);
    return is_good;
}

static bool make_space(struct record *r)
{
    enum { LEAST = 65536 };
    if (r->size - r->used >= LEAST)
        return true;
    size_t size = r->size * 2 + LEAST;
    char *text = size <= RECORD_MAX ? realloc(r->text, size) : NULL;
    if (!text) {
        fail_for_memory();
        return false;
    }
    r->text = text;
    r->size = size;
    return true;
}

/* False: the server ends with an error. */
static bool read_records(struct server *s)
{
    struct record *r = &s->record;
    if (!make_space(r))
        return false;
    ssize_t n = read(STDIN_FILENO, r->text + r->used, r->size - r->used);
    if (is_later(n))
        return true;
    if (n <= 0) {
        s->is_over = true;
        return true;
    }
    r->used += (size_t)n;
    return take_lines(s);
}

/* ---- the loop */

static int open_listener(uint16_t port, struct http_site *site)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, CLIENTS_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    site->port = ntohs(at.sin_port);
    return fd;
}

static bool make_key(char key[HTTP_KEY + 1])
{
    uint8_t bytes[HTTP_KEY / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static int left_ms(uint64_t deadline)
{
    uint64_t now = tk_now();
    return deadline > now ? (int)((deadline - now) / MS) + 1 : 0;
}

/* Closes clients that are too late; returns the time until the next one is, -1: never. */
static int watch_clients(struct server *s)
{
    int next = -1;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &s->clients[i];
        int left = c->phase == CLIENT_FREE ? -1 : left_ms(c->deadline);
        if (left == 0)
            drop(c);
        else if (left > 0 && (next < 0 || left < next))
            next = left;
    }
    return next;
}

enum { POLL_RECORDS, POLL_LISTENER, POLL_CLIENTS };

static void set_up_poll(struct server *s, struct pollfd *p)
{
    p[POLL_RECORDS] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    p[POLL_LISTENER] = (struct pollfd){find_free(s) ? s->listener : -1, POLLIN, 0};
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct client *c = &s->clients[i];
        short events = c->phase == CLIENT_TAKES ? POLLOUT : POLLIN;
        p[POLL_CLIENTS + i] = (struct pollfd){c->phase == CLIENT_FREE ? -1 : c->fd, events, 0};
    }
}

static int serve_loop(struct server *s)
{
    struct pollfd p[POLL_CLIENTS + CLIENTS_MAX];
    while (!s->is_over) {
        int wait = watch_clients(s);
        set_up_poll(s, p);
        if (poll(p, sizeof(p) / sizeof(*p), wait) <= 0)
            continue;
        for (int i = 0; i < CLIENTS_MAX; i++)
            if (p[POLL_CLIENTS + i].fd >= 0 && p[POLL_CLIENTS + i].revents)
                serve_client(s, &s->clients[i]);
        if (p[POLL_RECORDS].revents && !read_records(s))
            return EXIT_FAILURE;
        if (p[POLL_LISTENER].fd >= 0 && p[POLL_LISTENER].revents)
            accept_client(s);
    }
    return EXIT_SUCCESS;
}

int serve_run(uint16_t port, const struct serve_source *source)
{
    struct server s = {.source = source};
    for (int i = 0; i < CLIENTS_MAX; i++)
        s.clients[i].fd = -1;
    if (!owner_is_shown()) {
        fprintf(stderr, "gasnet_report: --serve: this host does not show who owns a connection: "
                        "another user could not be refused; write a file instead (-o)\n");
        return EXIT_FAILURE;
    }
    if (!make_key(s.site.key)) {
        fprintf(stderr, "gasnet_report: --serve: no random key: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    s.listener = open_listener(port, &s.site);
    if (s.listener < 0) {
        fprintf(stderr, "gasnet_report: --serve: cannot listen on port %u of 127.0.0.1: %s\n", port,
                strerror(errno));
        return EXIT_FAILURE;
    }
    fprintf(stderr, "gasnet_report: http://127.0.0.1:%u/%s/\n", s.site.port, s.site.key);
    int status = serve_loop(&s);
    close(s.listener);
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (s.clients[i].phase != CLIENT_FREE)
            drop(&s.clients[i]);
    free(s.record.text);
    return status;
}
