/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller of mcswitchd with correct members, and with others: wrong keys, connections that
 * are silent or stop in the middle, every wrong length, other jobs, members that do not read. A
 * correct member is served throughout. Started by daemon.sh, which started the switch: controller
 * HOST:PORT [FILE], FILE with the switch's own key. Other tests: controller HOST:PORT crowd PID:
 * members that get no CPU while strangers come, a switch, with that PID, that gets none, and more
 * jobs than it takes; controller HOST:PORT full N: more members than the N that it may have. */
#include "config.h"

#include "common/sha256.h"
#include "mcswitch/client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    patience_ms = 60000,
    strangers = 100,
    crowd = 300,       /* more than the unauthenticated connections that a switch keeps */
    proof_ms = 5000,   /* of the switch */
    late_members = 80, /* more than the events of a round of the switch's loop */
    jobs_most = 1024,  /* of the switch */
    connections_most = 512,
    rqpn_first = 0x100
};

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct sockaddr_storage where;
static uint8_t site_key[TK_MCSW_KEY];
static bool has_site_key;

static struct tk_mcsw_job job_new(void)
{
    struct tk_mcsw_job job;

    CHECK(tk_mcsw_job_make(&job, has_site_key ? site_key : NULL));
    return job;
}

static void done(struct tk_mcsw_client *c)
{
    if (tk_mcsw_wait(c) != TK_MCSW_DONE) {
        fprintf(stderr, "refused: %s\n", c->why);
        exit(1);
    }
}

static void refused(struct tk_mcsw_client *c, unsigned error)
{
    CHECK(tk_mcsw_wait(c) == TK_MCSW_REFUSED);
    if (c->error != error) {
        fprintf(stderr, "refused by %u, not %u: %s\n", c->error, error, c->why);
        exit(1);
    }
    CHECK(c->why[0]);
}

static void dial(struct tk_mcsw_client *c, const struct tk_mcsw_job *job)
{
    tk_mcsw_dial(c, &where, job, patience_ms);
    done(c);
}

/* A member with an unused address; its number makes its queue pairs differ. */
static struct tk_mcsw_member member_new(uint32_t rank, uint32_t number)
{
    struct tk_mcsw_member m = {.rank = rank,
                               .plane = TK_MCSW_UDP,
                               .mtu = 1024,
                               .gid = {[10] = 0xff, 0xff, 127, 77, 0, 9},
                               .sqpn = rqpn_first + 2 * number,
                               .rqpn = rqpn_first + 2 * number + 1,
                               .sqpsn = 0xfffff0,
                               .rqpsn = 5};
    return m;
}

/* ---- members in order ---- */

static struct tk_mcsw_event last_event;
static unsigned events;

static void on_event(void *context, const struct tk_mcsw_event *e)
{
    (void)context;
    last_event = *e;
    events++;
}

static void await_event(struct tk_mcsw_client *c, unsigned kind)
{
    for (int i = 0; i < patience_ms / 10; i++) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};

        tk_mcsw_step(c);
        if (events > 0 && last_event.kind == kind)
            return;
        poll(&p, 1, 10);
    }
    fprintf(stderr, "no event %u\n", kind);
    exit(1);
}

/* Two connections of one job with a group of two. */
static uint32_t pair_open(struct tk_mcsw_client *a, struct tk_mcsw_client *b,
                          const struct tk_mcsw_job *job, uint32_t number)
{
    struct tk_mcsw_member first = member_new(0, number), second = member_new(1, number + 1);

    dial(a, job);
    dial(b, job);
    tk_mcsw_create(a, 2, patience_ms);
    done(a);
    tk_mcsw_join(a, a->group, &first, patience_ms);
    CHECK(tk_mcsw_step(a) == TK_MCSW_GOING);
    tk_mcsw_join(b, a->group, &second, patience_ms);
    done(b);
    done(a);
    CHECK(a->place.group == a->group && b->place.group == a->group);
    CHECK(a->place.rank == 0 && b->place.rank == 1 && a->place.members == 2);
    CHECK(a->place.key == b->place.key && a->place.key != 0);
    CHECK(a->place.vrqpn != b->place.vrqpn && a->place.vsqpn != b->place.vsqpn);
    return a->group;
}

static void life(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a, b;
    struct tk_mcsw_member m = member_new(0, 1);
    uint32_t group = pair_open(&a, &b, &job, 1);

    tk_mcsw_probe(&a, patience_ms);
    done(&a);
    CHECK(a.info.planes == 1u << TK_MCSW_UDP && a.info.members >= 32 && a.info.mtu == 4096);
    CHECK(a.info.vip[0].requests[0] == 0xfd && a.info.vip[0].requests[15] == 0);
    m.rqpsn = 0x500000;
    tk_mcsw_repair(&a, group, TK_MCSW_REPAIR_RQP, &m, patience_ms);
    done(&a);
    b.event = on_event;
    events = 0;
    tk_mcsw_mark(&a, group, 0, patience_ms);
    done(&a);
    await_event(&b, TK_MCSW_MEMBER_DIRTY);
    CHECK(last_event.group == group && last_event.rank == 0);
    tk_mcsw_close(&a);
    await_event(&b, TK_MCSW_MEMBER_LEFT);
    CHECK(last_event.rank == 0);
    tk_mcsw_destroy(&b, group, patience_ms);
    done(&b);
    tk_mcsw_leave(&b, group, 1, patience_ms);
    refused(&b, TK_MCSW_E_UNKNOWN);
    tk_mcsw_close(&b);
}

/* A group that can't become complete does not keep its members waiting. */
static void incomplete(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a, b;
    struct tk_mcsw_member first = member_new(0, 1), second = member_new(1, 2);

    dial(&a, &job);
    dial(&b, &job);
    tk_mcsw_create(&a, 3, patience_ms);
    done(&a);
    tk_mcsw_join(&a, a.group, &first, patience_ms);
    tk_mcsw_join(&b, a.group, &second, patience_ms);
    CHECK(tk_mcsw_step(&b) == TK_MCSW_GOING);
    tk_mcsw_close(&b);
    refused(&a, TK_MCSW_E_GONE);
    tk_mcsw_close(&a);
}

static void joins_badly(struct tk_mcsw_client *c, uint32_t group, const struct tk_mcsw_member *m,
                        unsigned error)
{
    tk_mcsw_join(c, group, m, patience_ms);
    refused(c, error);
}

static void arguments(void)
{
    struct tk_mcsw_job job = job_new(), other = job_new();
    struct tk_mcsw_client a, b, c;
    struct tk_mcsw_member good = member_new(0, 8), m;
    uint32_t group = pair_open(&a, &b, &job, 1);

    dial(&c, &job);
    tk_mcsw_create(&c, 1, patience_ms);
    refused(&c, TK_MCSW_E_ARGUMENT);
    tk_mcsw_create(&c, 0x10000, patience_ms);
    refused(&c, TK_MCSW_E_ARGUMENT);
    tk_mcsw_create(&c, 2, patience_ms);
    done(&c);
    CHECK(c.group != group);
#define BAD(field, value, error)                                                                   \
    m = good;                                                                                      \
    m.field = value;                                                                               \
    joins_badly(&c, c.group, &m, error)
    BAD(rank, 2, TK_MCSW_E_STATE);
    BAD(plane, TK_MCSW_FRAMES, TK_MCSW_E_ARGUMENT);
    BAD(plane, 7, TK_MCSW_E_ARGUMENT);
    BAD(mtu, 1000, TK_MCSW_E_ARGUMENT);
    BAD(mtu, 8192, TK_MCSW_E_ARGUMENT);
    BAD(mtu, 0, TK_MCSW_E_ARGUMENT);
    BAD(gid[3], 1, TK_MCSW_E_ARGUMENT);
    BAD(gid[12], 224, TK_MCSW_E_ARGUMENT);
    BAD(sqpn, 1, TK_MCSW_E_ARGUMENT);
    BAD(rqpn, 1 << 24, TK_MCSW_E_ARGUMENT);
    BAD(sqpsn, 1 << 24, TK_MCSW_E_ARGUMENT);
    BAD(rqpsn, 0xffffffff, TK_MCSW_E_ARGUMENT);
    BAD(rkey, 0xffffffff, TK_MCSW_E_ARGUMENT);
    BAD(rqpn, member_new(1, 2).rqpn, TK_MCSW_E_STATE); /* of the other group's member */
    joins_badly(&c, group, &good, TK_MCSW_E_STATE);
    joins_badly(&c, 0, &good, TK_MCSW_E_UNKNOWN);
    joins_badly(&c, 0xffffffff, &good, TK_MCSW_E_UNKNOWN);
    tk_mcsw_repair(&c, group, TK_MCSW_REPAIR_RQP, &good, patience_ms);
    refused(&c, TK_MCSW_E_STATE); /* of another connection */
    good = member_new(1, 2);
    tk_mcsw_repair(&b, group, 9, &good, patience_ms);
    refused(&b, TK_MCSW_E_ARGUMENT);
    tk_mcsw_close(&c);
    /* Another job */
    dial(&c, &other);
    joins_badly(&c, group, &good, TK_MCSW_E_UNKNOWN);
    tk_mcsw_destroy(&c, group, patience_ms);
    refused(&c, TK_MCSW_E_UNKNOWN);
    tk_mcsw_mark(&c, group, 0, patience_ms);
    refused(&c, TK_MCSW_E_UNKNOWN);
    tk_mcsw_close(&a);
    tk_mcsw_close(&b);
    tk_mcsw_close(&c);
}

/* ---- wrong keys ---- */

static void wrong_key(void)
{
    struct tk_mcsw_job job = job_new(), liar = job;
    struct tk_mcsw_client a, b;

    dial(&a, &job);
    liar.key[5] ^= 1;
    tk_mcsw_dial(&b, &where, &liar, patience_ms);
    refused(&b, TK_MCSW_E_KEY);
    CHECK(strstr(b.why, "key"));
    if (has_site_key) { /* also for an unknown job */
        liar.id[0] ^= 1;
        tk_mcsw_dial(&b, &where, &liar, patience_ms);
        refused(&b, TK_MCSW_E_KEY);
    }
    tk_mcsw_probe(&a, patience_ms);
    done(&a);
    tk_mcsw_close(&a);
}

/* ---- connections that are no members ---- */

static int raw_open(void)
{
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = patience_ms / 1000};

    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&where, sizeof(struct sockaddr_in)) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* Reads to the end; false: it does not come. */
static bool ends(int fd)
{
    uint8_t bytes[512];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        continue;
    close(fd);
    return n == 0 || errno == ECONNRESET;
}

static void silent_and_cut(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a;
    uint8_t claim[TK_MCSW_CLAIM];
    int fds[strangers];

    for (int i = 0; i < strangers; i++)
        fds[i] = raw_open();
    dial(&a, &job); /* they do not keep a member out */
    for (int i = 0; i < strangers; i++)
        close(fds[i]);
    tk_mcsw_put_header(claim, 0);
    memset(claim + TK_MCSW_HEADER, 0x5a, sizeof claim - TK_MCSW_HEADER);
    for (size_t n = 1; n < sizeof claim; n += 13) { /* a claim that stops */
        int fd = raw_open();

        CHECK(send(fd, claim, n, MSG_NOSIGNAL) == (ssize_t)n);
        shutdown(fd, SHUT_WR);
        CHECK(ends(fd));
    }
    fds[0] = raw_open();
    CHECK(send(fds[0], claim, sizeof claim, MSG_NOSIGNAL) == sizeof claim);
    CHECK(ends(fds[0]));
    claim[0] ^= 1; /* no magic */
    fds[0] = raw_open();
    CHECK(send(fds[0], claim, sizeof claim, MSG_NOSIGNAL) == sizeof claim);
    CHECK(ends(fds[0]));
    tk_mcsw_probe(&a, patience_ms);
    done(&a);
    tk_mcsw_close(&a);
}

/* A frame of this length and type, and bytes of a body; the switch ends the connection. */
static void lie(const struct tk_mcsw_job *job, uint32_t length, unsigned type, size_t body)
{
    struct tk_mcsw_client c;
    uint8_t bytes[2048] = {0};
    struct tk_mcsw_frame f = {bytes, bytes + 6};
    struct pollfd p = {.events = POLLIN};

    dial(&c, job);
    tk_mcsw_put(&f, length, 4);
    tk_mcsw_put(&f, type, 2);
    CHECK(send(c.fd, bytes, 6 + body, MSG_NOSIGNAL) > 0);
    p.fd = c.fd;
    while (c.fd >= 0 && poll(&p, 1, patience_ms) > 0)
        tk_mcsw_step(&c);
    if (c.fd >= 0) {
        fprintf(stderr, "length %u of type %u is taken\n", length, type);
        exit(1);
    }
}

static void lengths(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a;

    dial(&a, &job);
    for (unsigned type = 0; type < TK_MCSW_REQUESTS + 1; type++) {
        uint32_t body = (uint32_t)tk_mcsw_body(type);

        for (uint32_t length = 0; length < 2 + body + 8; length += length + 1 < body ? 7 : 1)
            if (body == 0 || length != 2 + body)
                lie(&job, length, type, length);
        lie(&job, 0xffffffff, type, 100);
        lie(&job, 0x80000000 + 2 + body, type, 100);
        lie(&job, 0x10000 + 2 + body, type, 1500);
    }
    lie(&job, 6, TK_MCSW_INFO, 4);
    lie(&job, 6, TK_MCSW_ERROR, 4);
    lie(&job, 6, 0xffff, 4);
    tk_mcsw_probe(&a, patience_ms);
    done(&a);
    tk_mcsw_close(&a);
}

/* A member that does not read its events is closed, and the others continue. */
static void slow(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a, b;
    uint32_t group = pair_open(&a, &b, &job, 1);
    int small = 1;

    setsockopt(a.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    b.event = on_event;
    events = 0;
    for (int i = 0; i < 1000000; i++) {
        tk_mcsw_mark(&b, group, 1, patience_ms);
        done(&b);
        if (events > 0 && last_event.kind == TK_MCSW_MEMBER_LEFT && last_event.rank == 0)
            break;
        CHECK(i < 999999);
    }
    tk_mcsw_close(&a);
    tk_mcsw_close(&b);
}

/* ---- a correct member that gets no CPU, and a switch that gets none ---- */

/* Connects as far as possible without any step of the member after the first. */
static void dial_and_sleep(struct tk_mcsw_client *c, const struct tk_mcsw_job *job)
{
    struct pollfd p = {.events = POLLIN};

    tk_mcsw_dial(c, &where, job, patience_ms);
    CHECK(c->status == TK_MCSW_GOING);
    p.fd = c->fd;
    CHECK(poll(&p, 1, patience_ms) == 1 && p.revents & POLLIN); /* the greeting */
}

/* Strangers that came while a member had no CPU take its place; it comes again. */
static void crowded(void)
{
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client a;
    uint8_t greeting[TK_MCSW_GREETING];
    int fds[crowd];

    dial_and_sleep(&a, &job);
    for (int i = 0; i < crowd; i++) {
        fds[i] = raw_open();
        CHECK(recv(fds[i], greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting);
    }
    done(&a);
    CHECK(a.dropped > 0); /* else this tests nothing */
    tk_mcsw_probe(&a, patience_ms);
    done(&a);
    for (int i = 0; i < crowd; i++)
        close(fds[i]);
    tk_mcsw_close(&a);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Members that have greetings in the sockets, and a switch that is stopped before the first one's
 * time is over; false: this machine was too slow. */
static bool stop_with_members(pid_t pid, struct tk_mcsw_client *c, int n)
{
    struct tk_mcsw_job job = job_new();
    int64_t begin = now_ms();

    for (int i = 0; i < n; i++)
        dial_and_sleep(&c[i], &job);
    CHECK(kill(pid, SIGSTOP) == 0);
    if (now_ms() - begin < proof_ms / 2)
        return true;
    CHECK(kill(pid, SIGCONT) == 0);
    for (int i = 0; i < n; i++)
        tk_mcsw_close(&c[i]);
    return false;
}

/* Proofs that lie in a stopped switch's sockets when their time is over count; a member that was
 * stopped itself, the last one, comes again. */
static void stopped(pid_t pid)
{
    static struct tk_mcsw_client all[late_members + 1];
    struct tk_mcsw_client *sleeper = &all[late_members];
    int tries = 0;

    while (!stop_with_members(pid, all, late_members + 1))
        CHECK(++tries < 20);
    for (int i = 0; i < late_members; i++)
        CHECK(tk_mcsw_step(&all[i]) == TK_MCSW_GOING); /* sends its proof */
    usleep(1000 * (proof_ms + 200));
    CHECK(kill(pid, SIGCONT) == 0);
    for (int i = 0; i < late_members; i++) {
        done(&all[i]);
        CHECK(all[i].dropped == 0);
        tk_mcsw_close(&all[i]);
    }
    CHECK(poll(&(struct pollfd){.fd = sleeper->fd, .events = POLLRDHUP}, 1, patience_ms) == 1);
    done(sleeper);
    CHECK(sleeper->dropped > 0);
    tk_mcsw_close(sleeper);
}

/* A job too many is refused at once and with the reason, although others may dial for long. */
static void too_many_jobs(void)
{
    static struct tk_mcsw_client all[jobs_most];
    struct rlimit files = {0};
    struct tk_mcsw_job job;
    struct tk_mcsw_client one;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    if (files.rlim_max < 2 * jobs_most || setrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    for (int i = 0; i < jobs_most; i++) {
        job = job_new();
        dial(&all[i], &job);
    }
    job = job_new();
    tk_mcsw_dial(&one, &where, &job, patience_ms);
    refused(&one, TK_MCSW_E_FULL);
    CHECK(strstr(one.why, "no space for another job") && one.dropped == 0);
    for (int i = 0; i < jobs_most; i++)
        tk_mcsw_close(&all[i]);
}

/* A switch with as many connections as it may have ends a stranger's for a member, at once; without
 * strangers a member waits for a free one. */
static void full(int limit)
{
    static struct tk_mcsw_client all[connections_most];
    struct tk_mcsw_job job = job_new();
    struct tk_mcsw_client one;
    uint8_t greeting[TK_MCSW_GREETING];
    int fd;

    CHECK(limit > 0 && limit <= connections_most);
    for (int i = 0; i < limit - 1; i++)
        dial(&all[i], &job);
    fd = raw_open();
    CHECK(recv(fd, greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting);
    dial(&all[limit - 1], &job);
    CHECK(all[limit - 1].dropped == 0);
    CHECK(ends(fd));
    tk_mcsw_dial(&one, &where, &job, patience_ms);
    while (one.dropped < 3) {
        CHECK(tk_mcsw_step(&one) == TK_MCSW_GOING);
        usleep(1000);
    }
    tk_mcsw_close(&all[0]);
    done(&one);
    for (int i = 1; i < limit; i++)
        tk_mcsw_close(&all[i]);
    tk_mcsw_close(&one);
}

/* The tests that have a word and a number. */
static void named(const char *name, int number)
{
    if (strcmp(name, "crowd") == 0) {
        crowded();
        stopped((pid_t)number);
        too_many_jobs();
    } else if (strcmp(name, "full") == 0) {
        full(number);
    } else {
        CHECK(!"a known word");
    }
}

int main(int argc, char **argv)
{
    char why[160] = "usage: controller HOST:PORT [FILE], or controller HOST:PORT WORD NUMBER";

    if (argc < 2 || !tk_mcsw_resolve(argv[1], &where, why, sizeof why) ||
        (argc == 3 && !tk_mcsw_key_read(argv[2], site_key, why, sizeof why))) {
        fprintf(stderr, "%s\n", why);
        return 2;
    }
    has_site_key = argc == 3;
    alarm(5 * patience_ms / 1000);
    if (argc > 3) {
        named(argv[2], atoi(argv[3]));
        return 0;
    }
    life();
    incomplete();
    arguments();
    wrong_key();
    silent_and_cut();
    lengths();
    slow();
    return 0;
}
