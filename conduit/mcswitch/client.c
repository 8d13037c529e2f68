/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The member's end of a connection to a multicast switch's controller; see client.h. `step` is the
 * current activity: connecting, the exchange of proofs, or waiting for the answer to a request. */
#include "config.h"

#include "mcswitch/client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/sha256.h"

enum { pause_min = 10, pause_doublings = 5 }; /* ms between attempts of a dial */
enum step { STEP_CONNECT, STEP_GREETING, STEP_CLAIM, STEP_ANSWER, STEP_OPEN };

/* Offsets of the fields of claim and answer in the exchanged bytes. */
enum {
    claim_id = TK_MCSW_GREETING + TK_MCSW_HEADER,
    claim_key = claim_id + TK_MCSW_ID,
    claim_nonce = claim_key + TK_MCSW_KEY,
    claim_code = claim_nonce + TK_MCSW_NONCE,
    answer_code = claim_code + TK_MCSW_CODE,
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool random_bytes(void *to, size_t bytes)
{
    return getrandom(to, bytes, 0) == (ssize_t)bytes;
}

bool tk_mcsw_job_make(struct tk_mcsw_job *job, const uint8_t site_key[TK_MCSW_KEY])
{
    if (!random_bytes(job, sizeof(*job)))
        return false;
    job->derived = site_key != NULL;
    if (site_key)
        tk_mcsw_derive(site_key, job->id, job->key);
    return true;
}

/* ---- the address ---- */

/* Splits "host:port" or "[v6]:port"; false: the text is neither. */
static bool cut_address(const char *text, char *host, size_t space, const char **port)
{
    const char *end, *from = text;

    if (*text == '[') {
        from = text + 1;
        end = strstr(text, "]:");
        *port = end ? end + 2 : NULL;
    } else {
        end = strrchr(text, ':');
        *port = end ? end + 1 : NULL;
    }
    if (!end || end == from || (size_t)(end - from) >= space || !**port ||
        strspn(*port, "0123456789") != strlen(*port) || strlen(*port) > 5)
        return false;
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = 0;
    return *text == '[' || !strchr(host, ':');
}

bool tk_mcsw_resolve(const char *text, struct sockaddr_storage *to, char *why, size_t space)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    char host[256];
    const char *port;
    unsigned number;
    int error;

    if (!cut_address(text, host, sizeof(host), &port) || sscanf(port, "%u", &number) != 1 ||
        number < 1 || number > 65535) {
        snprintf(why, space, "'%s' is not host:port, with a port from 1 to 65535", text);
        return false;
    }
    error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        snprintf(why, space, "%s: %s", host, gai_strerror(error));
        return false;
    }
    memset(to, 0, sizeof(*to));
    memcpy(to, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

/* ---- the end of anything ---- */

static enum tk_mcsw_status refuse(struct tk_mcsw_client *c, unsigned error, const char *why)
{
    snprintf(c->why, sizeof(c->why), "%s", why);
    c->error = (uint16_t)error;
    return c->status = TK_MCSW_REFUSED;
}

/* No requests are possible after this. */
static enum tk_mcsw_status broken(struct tk_mcsw_client *c, const char *why)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    return refuse(c, TK_MCSW_E_LOCAL, why);
}

void tk_mcsw_close(struct tk_mcsw_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    memset(&c->job, 0, sizeof(c->job));
    c->fd = -1;
    refuse(c, TK_MCSW_E_LOCAL, "the connection is closed");
}

/* ---- connecting ---- */

static void open_connection(struct tk_mcsw_client *c)
{
    socklen_t length =
        c->to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int on = 1;

    c->dial_at = 0;
    c->step = STEP_CONNECT;
    c->held = c->sent = 0;
    c->fd = socket(c->to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        broken(c, strerror(errno));
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (connect(c->fd, (const struct sockaddr *)&c->to, length) != 0 && errno != EINPROGRESS)
        broken(c, strerror(errno));
}

void tk_mcsw_dial(struct tk_mcsw_client *c, const struct sockaddr_storage *to,
                  const struct tk_mcsw_job *job, uint32_t ms)
{
    memset(c, 0, sizeof(*c));
    c->job = *job;
    c->to = *to;
    c->deadline = now_ms() + ms;
    open_connection(c);
}

/* Dials again after a pause if the switch had not answered: it may have closed this connection to
 * make space for others, or after a delay of this host. A refusal comes as an answer. */
static void dropped(struct tk_mcsw_client *c)
{
    unsigned doublings = c->dropped < pause_doublings ? c->dropped : pause_doublings;

    if (c->step == STEP_OPEN) {
        broken(c, "the switch closed the connection");
        return;
    }
    close(c->fd);
    c->fd = -1;
    c->dropped++;
    c->dial_at = now_ms() + (pause_min << doublings);
}

static void failed(struct tk_mcsw_client *c, int error)
{
    if (error == ECONNRESET || error == EPIPE)
        dropped(c);
    else
        broken(c, strerror(error));
}

static bool connected(struct tk_mcsw_client *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof(error);

    if (poll(&p, 1, 0) <= 0)
        return false;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0)
        failed(c, error);
    else
        c->step = STEP_GREETING;
    return error == 0;
}

static bool header_is_good(struct tk_mcsw_client *c)
{
    struct tk_mcsw_frame f = {c->talk + 8, c->talk + TK_MCSW_HEADER};
    uint32_t version = (uint32_t)tk_mcsw_get(&f, 4);
    char why[128];

    if (memcmp(c->talk, TK_MCSW_MAGIC, 8) != 0) {
        broken(c, "what answers there is no controller of a multicast switch");
        return false;
    }
    if (version == TK_MCSW_VERSION)
        return true;
    snprintf(why, sizeof(why),
             "the switch speaks version %u of the controller's protocol, this process %u", version,
             (unsigned)TK_MCSW_VERSION);
    broken(c, why);
    return false;
}

static void write_claim(struct tk_mcsw_client *c)
{
    struct tk_mcsw_frame flags = {c->talk + 12, c->talk + TK_MCSW_HEADER};
    bool site = tk_mcsw_get(&flags, 4) & TK_MCSW_SITE_KEY;

    tk_mcsw_put_header(c->talk + TK_MCSW_GREETING, 0);
    memcpy(c->talk + claim_id, c->job.id, TK_MCSW_ID);
    /* A switch with a key of its own can compute the job's. */
    if (site || c->job.derived)
        memset(c->talk + claim_key, 0, TK_MCSW_KEY);
    else
        memcpy(c->talk + claim_key, c->job.key, TK_MCSW_KEY);
    if (!random_bytes(c->talk + claim_nonce, TK_MCSW_NONCE)) {
        broken(c, "no random bytes from the kernel");
        return;
    }
    tk_mcsw_code(c->job.key, false, c->talk, claim_code, c->talk + claim_code);
    c->step = STEP_CLAIM;
}

/* Not authenticated, since a switch that does not have the key can't prove anything. */
static bool is_refusal(struct tk_mcsw_client *c)
{
    uint8_t refusal[TK_MCSW_CODE];

    tk_mcsw_put_refusal(refusal, TK_MCSW_E_FULL);
    if (memcmp(refusal, c->talk + answer_code, sizeof(refusal)) != 0)
        return false;
    broken(c, "the switch has no space for another job");
    c->error = TK_MCSW_E_FULL;
    return true;
}

static void check_answer(struct tk_mcsw_client *c)
{
    uint8_t code[TK_MCSW_CODE];

    tk_mcsw_code(c->job.key, true, c->talk, answer_code, code);
    if (!tk_sha256_equal(code, c->talk + answer_code)) {
        if (is_refusal(c))
            return;
        broken(c, "the switch and this process do not have the same key of the job");
        c->error = TK_MCSW_E_KEY;
        return;
    }
    c->step = STEP_OPEN;
    c->held = 0;
    c->status = TK_MCSW_DONE;
}

/* ---- bytes in and out ---- */

/* Receives more bytes of an item of `size`; true: it is complete. */
static bool receive(struct tk_mcsw_client *c, uint8_t *to, size_t size)
{
    while (c->held < size) {
        ssize_t n = recv(c->fd, to + c->held, size - c->held, MSG_DONTWAIT);

        if (n > 0) {
            c->held += (size_t)n;
        } else if (n == 0) {
            dropped(c);
            return false;
        } else if (errno != EINTR) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                failed(c, errno);
            return false;
        }
    }
    return true;
}

static bool transmit(struct tk_mcsw_client *c, const uint8_t *from, size_t size)
{
    while (c->sent < size) {
        ssize_t n = send(c->fd, from + c->sent, size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            c->sent += (size_t)n;
        } else if (errno != EINTR) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                failed(c, errno);
            return false;
        }
    }
    return true;
}

/* ---- answers ---- */

static void take_event(struct tk_mcsw_client *c, struct tk_mcsw_frame *f)
{
    struct tk_mcsw_event e = {.group = (uint32_t)tk_mcsw_get(f, 4)};

    e.rank = (uint32_t)tk_mcsw_get(f, 4);
    e.kind = (uint32_t)tk_mcsw_get(f, 4);
    if (c->event)
        c->event(c->context, &e);
}

static void take_error(struct tk_mcsw_client *c, struct tk_mcsw_frame *f)
{
    unsigned error = (unsigned)tk_mcsw_get(f, 2);
    char why[sizeof(c->why)];
    size_t length = (size_t)(f->end - f->at);

    length = length < sizeof(why) ? length : sizeof(why) - 1;
    memcpy(why, f->at, length);
    why[length] = 0;
    for (size_t i = 0; i < length; i++)
        if (why[i] < ' ' || why[i] > '~')
            why[i] = '?';
    refuse(c, error, why);
}

static void take_answer(struct tk_mcsw_client *c, unsigned type, struct tk_mcsw_frame *f)
{
    if (c->asked == 0 || type != TK_MCSW_INFO + (unsigned)c->asked - TK_MCSW_PROBE) {
        broken(c, "an answer of the switch that nobody asked for");
        return;
    }
    if (type == TK_MCSW_INFO)
        tk_mcsw_get_info(f, &c->info);
    else if (type == TK_MCSW_CREATED)
        c->group = (uint32_t)tk_mcsw_get(f, 4);
    else if (type == TK_MCSW_JOINED)
        tk_mcsw_get_place(f, &c->place);
    c->status = TK_MCSW_DONE;
}

static void take_frame(struct tk_mcsw_client *c, size_t length)
{
    struct tk_mcsw_frame f = {c->in + 4, c->in + 4 + length};
    unsigned type = (unsigned)tk_mcsw_get(&f, 2);
    size_t body = (size_t)(f.end - f.at);

    c->held = 0;
    if (type == TK_MCSW_ERROR ? body < 2 : body != tk_mcsw_body(type))
        broken(c, "a damaged message of the switch");
    else if (type == TK_MCSW_EVENT)
        take_event(c, &f);
    else if (type == TK_MCSW_ERROR)
        take_error(c, &f);
    else
        take_answer(c, type, &f);
    if (type != TK_MCSW_EVENT)
        c->asked = 0;
}

/* Takes one frame; false: it is incomplete. */
static bool read_frame(struct tk_mcsw_client *c)
{
    struct tk_mcsw_frame head = {c->in, c->in + 4};
    size_t length;

    if (!receive(c, c->in, 4))
        return false;
    length = (size_t)tk_mcsw_get(&head, 4);
    if (length < 2 || length > TK_MCSW_FRAME_MAX - 4) {
        broken(c, "a damaged message of the switch");
        return false;
    }
    if (!receive(c, c->in, 4 + length))
        return false;
    take_frame(c, length);
    return true;
}

/* ---- steps ---- */

/* False: it has to wait, or the connection has ended. */
static bool advance(struct tk_mcsw_client *c)
{
    switch ((enum step)c->step) {
    case STEP_CONNECT:
        return connected(c);
    case STEP_GREETING:
        if (!receive(c, c->talk, TK_MCSW_HEADER) || !header_is_good(c) ||
            !receive(c, c->talk, TK_MCSW_GREETING))
            return false;
        write_claim(c);
        return true;
    case STEP_CLAIM:
        if (!transmit(c, c->talk + TK_MCSW_GREETING, TK_MCSW_CLAIM))
            return false;
        c->step = STEP_ANSWER;
        c->held = 0;
        return true;
    case STEP_ANSWER:
        if (!receive(c, c->talk + answer_code, TK_MCSW_CODE))
            return false;
        check_answer(c);
        return true;
    case STEP_OPEN:
        break;
    }
    return transmit(c, c->out, c->to_send) && read_frame(c);
}

static void timed_out(struct tk_mcsw_client *c)
{
    char why[160];

    snprintf(
        why, sizeof(why),
        "the switch closed %u connections before it answered (too many connections at it, or a "
        "host with far more work than CPUs)",
        c->dropped);
    broken(c, c->dropped && c->step != STEP_OPEN ? why : "the switch does not answer in time");
}

enum tk_mcsw_status tk_mcsw_step(struct tk_mcsw_client *c)
{
    if (c->dial_at && c->status == TK_MCSW_GOING && now_ms() >= c->dial_at)
        open_connection(c);
    /* Also without a pending request: there may be events. */
    while (c->fd >= 0 && advance(c))
        if (c->status == TK_MCSW_REFUSED)
            break;
    if (c->status == TK_MCSW_GOING && now_ms() >= c->deadline)
        timed_out(c);
    return c->status;
}

short tk_mcsw_poll_events(const struct tk_mcsw_client *c)
{
    if (c->step == STEP_CONNECT || c->step == STEP_CLAIM ||
        (c->step == STEP_OPEN && c->sent < c->to_send))
        return POLLIN | POLLOUT;
    return POLLIN;
}

enum tk_mcsw_status tk_mcsw_wait(struct tk_mcsw_client *c)
{
    while (tk_mcsw_step(c) == TK_MCSW_GOING) {
        struct pollfd p = {.fd = c->fd, .events = tk_mcsw_poll_events(c)};
        int64_t next = c->dial_at && c->dial_at < c->deadline ? c->dial_at : c->deadline;
        int64_t left = next - now_ms();

        poll(&p, 1, left > 0 ? (int)left : 0);
    }
    return c->status;
}

/* ---- requests ---- */

/* A connection that is broken stays refused with its reason. */
static bool may_ask(struct tk_mcsw_client *c, unsigned type, uint32_t ms)
{
    if (c->fd < 0)
        return false;
    if (c->step != STEP_OPEN || c->status == TK_MCSW_GOING) {
        broken(c, "a request to the switch before the one before it was done");
        return false;
    }
    c->asked = (uint8_t)type;
    c->status = TK_MCSW_GOING;
    c->error = TK_MCSW_E_NONE;
    c->deadline = now_ms() + ms;
    c->sent = 0;
    return true;
}

static void ask(struct tk_mcsw_client *c, const struct tk_mcsw_frame *f)
{
    c->to_send = tk_mcsw_end(f, c->out);
    tk_mcsw_step(c);
}

/* A request that consists of numbers only. */
static void ask_numbers(struct tk_mcsw_client *c, unsigned type, uint32_t first, uint32_t second,
                        uint32_t ms)
{
    struct tk_mcsw_frame f;

    if (!may_ask(c, type, ms))
        return;
    f = tk_mcsw_begin(c->out, type);
    tk_mcsw_put(&f, first, 4);
    if (tk_mcsw_body(type) == 8)
        tk_mcsw_put(&f, second, 4);
    ask(c, &f);
}

void tk_mcsw_probe(struct tk_mcsw_client *c, uint32_t ms)
{
    ask_numbers(c, TK_MCSW_PROBE, 0, 0, ms);
}

void tk_mcsw_create(struct tk_mcsw_client *c, uint32_t members, uint32_t ms)
{
    ask_numbers(c, TK_MCSW_CREATE, members, 0, ms);
}

void tk_mcsw_mark(struct tk_mcsw_client *c, uint32_t group, uint32_t rank, uint32_t ms)
{
    ask_numbers(c, TK_MCSW_MARK, group, rank, ms);
}

void tk_mcsw_leave(struct tk_mcsw_client *c, uint32_t group, uint32_t rank, uint32_t ms)
{
    ask_numbers(c, TK_MCSW_LEAVE, group, rank, ms);
}

void tk_mcsw_destroy(struct tk_mcsw_client *c, uint32_t group, uint32_t ms)
{
    ask_numbers(c, TK_MCSW_DESTROY, group, 0, ms);
}

void tk_mcsw_join(struct tk_mcsw_client *c, uint32_t group, const struct tk_mcsw_member *m,
                  uint32_t ms)
{
    struct tk_mcsw_frame f;

    if (!may_ask(c, TK_MCSW_JOIN, ms))
        return;
    f = tk_mcsw_begin(c->out, TK_MCSW_JOIN);
    tk_mcsw_put(&f, group, 4);
    tk_mcsw_put_member(&f, m);
    ask(c, &f);
}

void tk_mcsw_repair(struct tk_mcsw_client *c, uint32_t group, uint32_t what,
                    const struct tk_mcsw_member *m, uint32_t ms)
{
    struct tk_mcsw_frame f;

    if (!may_ask(c, TK_MCSW_REPAIR, ms))
        return;
    f = tk_mcsw_begin(c->out, TK_MCSW_REPAIR);
    tk_mcsw_put(&f, group, 4);
    tk_mcsw_put(&f, what, 4);
    tk_mcsw_put_member(&f, m);
    ask(c, &f);
}
