/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections of members; see control.h. */
#include "config.h"

#include "daemon/control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sha256.h"
#include "mcswitch/client.h"

enum {
    proof_ms = 5000,
    unproved_most = 256,  /* unauthenticated connections that may be open at a time */
    other_files = 128,    /* of ports, the administrator and the standard streams */
    accepts_of_round = 8, /* so that a crowd leaves time for the data of groups */
    frames_of_round = 4,
    claim_id = TK_MCSW_GREETING + TK_MCSW_HEADER,
    claim_key = claim_id + TK_MCSW_ID,
    claim_code = claim_key + TK_MCSW_KEY + TK_MCSW_NONCE,
    answer_code = claim_code + TK_MCSW_CODE,
};

static struct mcd_connection *connections;
static struct mcd_job jobs[MCD_JOBS];
static struct mcd_source listener = {.fd = -1};
static const uint8_t *site;
static const struct mcd_control_calls *calls;
static unsigned unproved, top;           /* behind the last connection in use */
static unsigned limit = MCD_CONNECTIONS; /* or fewer, if the process may not have so many files */
struct mcd_control_counters mcd_control_count;

/* ---- the end of a connection ---- */

static void end_connection(struct mcd_connection *c)
{
    if (c->state == MCD_FREE)
        return;
    if (c->state == MCD_OPEN)
        calls->gone(c);
    else
        unproved--;
    mcd_loop_close(&c->source);
    c->state = MCD_FREE;
    mcd_control_count.open--;
    if (c->job && --c->job->connections == 0)
        memset(c->job, 0, sizeof *c->job);
    c->job = NULL;
}

/* ---- outgoing ---- */

static void push_out(struct mcd_connection *c)
{
    ssize_t n = send(c->source.fd, c->out, c->out_length, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0) {
        memmove(c->out, c->out + n, c->out_length - (size_t)n);
        c->out_length -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        c->out_length = 0;
        c->ending = true;
    }
    mcd_loop_change(&c->source, c->out_length ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Does not close the connection, because the caller may be in a loop over members: its event or the
 * next tick does. */
void mcd_control_send(struct mcd_connection *c, const uint8_t *frame, size_t length)
{
    if (c->ending || c->source.fd < 0)
        return;
    if (c->out_length + length > sizeof c->out) {
        mcd_control_count.slow++;
        c->out_length = 0;
        c->ending = true;
        return;
    }
    memcpy(c->out + c->out_length, frame, length);
    c->out_length += length;
    push_out(c);
}

void mcd_control_answer(struct mcd_connection *c, unsigned type, uint32_t number)
{
    uint8_t out[TK_MCSW_FRAME_MAX];
    struct tk_mcsw_frame f = tk_mcsw_begin(out, type);

    tk_mcsw_put(&f, number, 4);
    mcd_control_send(c, out, tk_mcsw_end(&f, out));
}

void mcd_control_error(struct mcd_connection *c, enum tk_mcsw_error error, const char *why)
{
    uint8_t out[TK_MCSW_FRAME_MAX];
    struct tk_mcsw_frame f = tk_mcsw_begin(out, TK_MCSW_ERROR);

    mcd_control_count.errors++;
    tk_mcsw_put(&f, error, 2);
    tk_mcsw_put_bytes(&f, why, strlen(why));
    mcd_control_send(c, out, tk_mcsw_end(&f, out));
}

/* ---- the proof ---- */

static struct mcd_job *find_job(const uint8_t *id)
{
    for (unsigned i = 0; i < MCD_JOBS; i++)
        if (jobs[i].connections && memcmp(jobs[i].id, id, TK_MCSW_ID) == 0)
            return &jobs[i];
    return NULL;
}

static struct mcd_job *new_job(const uint8_t *id, const uint8_t *key)
{
    for (unsigned i = 0; i < MCD_JOBS; i++)
        if (jobs[i].connections == 0) {
            memset(&jobs[i], 0, sizeof jobs[i]);
            memcpy(jobs[i].id, id, TK_MCSW_ID);
            memcpy(jobs[i].key, key, TK_MCSW_KEY);
            return &jobs[i];
        }
    return NULL;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return any == 0;
}

/* Finds the key with which the claim must have been made; false: there is none. */
static bool key_of_claim(const uint8_t *talk, const struct mcd_job *job, uint8_t *key)
{
    if (site)
        tk_mcsw_derive(site, talk + claim_id, key);
    else
        memcpy(key, job ? job->key : talk + claim_key, TK_MCSW_KEY);
    return site || job || !all_zero(key, TK_MCSW_KEY);
}

/* Says so, because a member dials again if it is closed without a reason. */
static void refuse_claim(struct mcd_connection *c, uint64_t *counter, enum tk_mcsw_error error)
{
    uint8_t refusal[TK_MCSW_CODE];

    (*counter)++;
    tk_mcsw_put_refusal(refusal, error);
    mcd_control_send(c, refusal, sizeof refusal);
    c->ending = true;
}

/* The job of a correct claim and its key; NULL: refused. */
static struct mcd_job *job_of_claim(struct mcd_connection *c, uint8_t *key)
{
    struct mcd_job *job = find_job(c->in + claim_id);
    uint8_t code[TK_MCSW_CODE];
    bool good = key_of_claim(c->in, job, key);

    tk_mcsw_code(key, false, c->in, claim_code, code);
    if (!good || !tk_sha256_equal(code, c->in + claim_code)) {
        refuse_claim(c, &mcd_control_count.refused_key, TK_MCSW_E_KEY);
        return NULL;
    }
    if (!job)
        job = new_job(c->in + claim_id, key);
    if (!job)
        refuse_claim(c, &mcd_control_count.refused_full, TK_MCSW_E_FULL);
    return job;
}

static void check_claim(struct mcd_connection *c)
{
    struct tk_mcsw_frame version = {c->in + TK_MCSW_GREETING + 8, c->in + TK_MCSW_TALK};
    uint8_t key[TK_MCSW_KEY], code[TK_MCSW_CODE];
    struct mcd_job *job;

    if (memcmp(c->in + TK_MCSW_GREETING, TK_MCSW_MAGIC, 8) != 0 ||
        tk_mcsw_get(&version, 4) != TK_MCSW_VERSION) {
        mcd_control_count.malformed++;
        c->ending = true;
        return;
    }
    job = job_of_claim(c, key);
    if (!job)
        return;
    job->connections++;
    c->job = job;
    tk_mcsw_code(key, true, c->in, answer_code, code);
    unproved--;
    c->state = MCD_OPEN;
    c->held = 0;
    mcd_control_send(c, code, sizeof code);
}

/* ---- incoming ---- */

/* Receives bytes until there are `size`; true: complete. */
static bool pull_in(struct mcd_connection *c, size_t size)
{
    ssize_t n =
        c->held < size ? recv(c->source.fd, c->in + c->held, size - c->held, MSG_DONTWAIT) : 1;

    if (c->held < size && n > 0)
        c->held += (size_t)n;
    else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        c->ending = true;
    return !c->ending && c->held == size;
}

/* Takes a frame if it is complete; its length is checked against its type before its body is
 * read. */
static bool take_frame(struct mcd_connection *c)
{
    struct tk_mcsw_frame f = {c->in, c->in + TK_MCSW_FRAME_HEAD};
    size_t length, body;
    unsigned type;

    if (c->held < TK_MCSW_FRAME_HEAD && !pull_in(c, TK_MCSW_FRAME_HEAD))
        return false;
    length = (size_t)tk_mcsw_get(&f, 4);
    type = (unsigned)tk_mcsw_get(&f, 2);
    body = type < TK_MCSW_REQUESTS ? tk_mcsw_body(type) : 0;
    if (body == 0 || length != 2 + body) {
        mcd_control_count.malformed++;
        mcd_control_error(c, TK_MCSW_E_PROTOCOL, "a message of an unknown type or a wrong length");
        c->ending = true;
        return false;
    }
    if (!pull_in(c, TK_MCSW_FRAME_HEAD + body))
        return false;
    c->held = 0;
    mcd_control_count.requests++;
    f.end = f.at + body;
    calls->take(c, type, &f);
    return !c->ending;
}

static void ready(struct mcd_source *s, uint32_t events)
{
    struct mcd_connection *c = (struct mcd_connection *)(void *)s;

    if (events & EPOLLOUT)
        push_out(c);
    if (!c->ending && c->state == MCD_CLAIM && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        if (pull_in(c, TK_MCSW_GREETING + TK_MCSW_CLAIM))
            check_claim(c);
    } else if (!c->ending && c->state == MCD_OPEN) {
        for (int i = 0; i < frames_of_round && take_frame(c); i++)
            continue;
    }
    if (c->ending)
        end_connection(c);
}

/* ---- new ones ---- */

static struct mcd_connection *free_connection(void)
{
    for (unsigned i = 0; i < limit; i++)
        if (connections[i].state == MCD_FREE) {
            top = i < top ? top : i + 1;
            return &connections[i];
        }
    return NULL;
}

/* Its claim may have come, unread, while the switch had no CPU: then it is a member, and stays. */
static void end_unproved(struct mcd_connection *c)
{
    if (pull_in(c, TK_MCSW_GREETING + TK_MCSW_CLAIM))
        check_claim(c);
    else
        mcd_control_count.late++;
    if (c->ending || c->state == MCD_CLAIM)
        end_connection(c);
}

/* Closes the oldest unauthenticated connection to make space for a new one. */
static void end_oldest_unproved(void)
{
    struct mcd_connection *oldest = NULL;

    for (unsigned i = 0; i < top; i++)
        if (connections[i].state == MCD_CLAIM &&
            (!oldest || connections[i].deadline < oldest->deadline))
            oldest = &connections[i];
    if (oldest)
        end_unproved(oldest);
}

/* Keep-alive ends the connections of a dead host within half a minute. */
static void set_up(int fd)
{
    int on = 1, idle = 10, interval = 5, count = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static void greet(struct mcd_connection *c)
{
    tk_mcsw_put_header(c->in, site ? TK_MCSW_SITE_KEY : 0);
    if (getrandom(c->in + TK_MCSW_HEADER, TK_MCSW_NONCE, 0) != TK_MCSW_NONCE) {
        c->ending = true;
        return;
    }
    c->held = TK_MCSW_GREETING;
    mcd_control_send(c, c->in, TK_MCSW_GREETING);
}

static void admit(int fd)
{
    struct mcd_connection *c;

    if (unproved >= unproved_most || mcd_control_count.open >= limit)
        end_oldest_unproved();
    c = free_connection();
    if (!c) {
        mcd_control_count.refused_full++;
        close(fd);
        return;
    }
    set_up(fd);
    *c = (struct mcd_connection){.source = {.fd = fd, .ready = ready},
                                 .state = MCD_CLAIM,
                                 .deadline = mcd_now() + (uint64_t)proof_ms * 1000000};
    unproved++;
    mcd_control_count.accepted++;
    mcd_control_count.open++;
    if (!mcd_loop_add(&c->source, EPOLLIN))
        c->ending = true;
    greet(c);
}

static void accept_ready(struct mcd_source *s, uint32_t events)
{
    (void)events;
    for (int i = 0; i < accepts_of_round; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        admit(fd);
    }
}

void mcd_control_tick(uint64_t now)
{
    for (unsigned i = 0; i < top; i++) {
        struct mcd_connection *c = &connections[i];

        if (c->state == MCD_CLAIM && now > c->deadline)
            end_unproved(c);
        if (c->state != MCD_FREE && c->ending)
            end_connection(c);
    }
    while (top > 0 && connections[top - 1].state == MCD_FREE)
        top--;
}

/* accept() must not fail for lack of files: the connection would stay in the queue, and wake the
 * loop for ever. */
static void find_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    if (files.rlim_cur < MCD_CONNECTIONS + other_files) {
        files.rlim_cur = MCD_CONNECTIONS + other_files;
        if (files.rlim_max < files.rlim_cur)
            files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur < MCD_CONNECTIONS + other_files)
        limit = files.rlim_cur > other_files ? (unsigned)files.rlim_cur - other_files : 1;
}

bool mcd_control_open(const char *text, const uint8_t *site_key, const struct mcd_control_calls *to)
{
    struct sockaddr_storage at;
    char why[200];
    int on = 1;

    site = site_key;
    calls = to;
    find_limit();
    connections = calloc(MCD_CONNECTIONS, sizeof *connections);
    if (!tk_mcsw_resolve(text, &at, why, sizeof why)) {
        fprintf(stderr, "mcswitchd: --control: %s\n", why);
        mcd_status = 2;
        return false;
    }
    listener = (struct mcd_source){
        .fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
        .ready = accept_ready};
    setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!connections || listener.fd < 0 ||
        bind(listener.fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listener.fd, SOMAXCONN) != 0 || !mcd_loop_add(&listener, EPOLLIN)) {
        fprintf(stderr, "mcswitchd: --control %s: %s\n", text, strerror(errno));
        return false;
    }
    return true;
}

void mcd_control_close_all(void)
{
    mcd_loop_close(&listener);
    for (unsigned i = 0; i < top; i++)
        end_connection(&connections[i]);
    memset(jobs, 0, sizeof jobs);
}
