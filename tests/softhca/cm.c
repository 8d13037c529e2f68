/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management on softhca without a kernel to compare with: ports that are down, processes
 * that share the numbers of ports, queues of listeners, the end of a process, fork, threads,
 * descriptors. */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "harness.h"

enum { port = 4791 };

struct pair {
    struct rdma_event_channel *channel; /* of all three */
    struct rdma_cm_id *listener, *client, *server;
};

static struct sockaddr_in at(uint32_t ip, uint16_t number)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(number), .sin_addr = {.s_addr = htonl(ip)}};
}

static uint32_t own(int hca, int number)
{
    return 10u << 24 | 83u << 16 | (uint32_t)hca << 8 | (uint32_t)number;
}

static bool ready(struct rdma_event_channel *ch, int ms)
{
    struct pollfd p = {.fd = ch->fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

/* The next event must be this one; returns its status. */
static int expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
                  struct rdma_cm_id **id)
{
    struct rdma_cm_event *e;
    int status;

    CHECK(ready(ch, HANG * 1000));
    CHECK(rdma_get_cm_event(ch, &e) == 0);
    if (e->event != type)
        fprintf(stderr, "%s, not %s\n", rdma_event_str(e->event), rdma_event_str(type));
    CHECK_EQ(e->event, type);
    if (id)
        *id = e->id;
    status = e->status;
    rdma_ack_cm_event(e);
    return status;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *ch)
{
    struct rdma_cm_id *id;

    CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};

    CHECK(rdma_create_qp(id, NULL, &init) == 0);
}

static struct rdma_cm_id *serve(struct rdma_event_channel *ch, uint32_t ip, int backlog)
{
    struct rdma_cm_id *id = make_id(ch);
    struct sockaddr_in a = at(ip, port);

    CHECK(rdma_bind_addr(id, (struct sockaddr *)&a) == 0);
    CHECK(rdma_listen(id, backlog) == 0);
    return id;
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *ch, uint32_t ip)
{
    struct rdma_cm_id *id = make_id(ch);
    struct sockaddr_in a = at(ip, port);

    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, NULL), 0);
    CHECK(rdma_resolve_route(id, 1000) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL), 0);
    make_qp(id);
    return id;
}

static struct rdma_cm_id *request(struct rdma_event_channel *ch, uint32_t ip)
{
    struct rdma_conn_param p = {.retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id = resolve(ch, ip);

    CHECK(rdma_connect(id, &p) == 0);
    return id;
}

static void accept_it(struct rdma_cm_id *id)
{
    make_qp(id);
    CHECK(rdma_accept(id, NULL) == 0);
}

static void destroy(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    CHECK(rdma_destroy_id(id) == 0);
}

static void connect_pair(struct pair *p)
{
    p->channel = rdma_create_event_channel();
    CHECK(p->channel);
    p->listener = serve(p->channel, INADDR_ANY, 8);
    p->client = request(p->channel, own(0, 1));
    CHECK_EQ(expect(p->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &p->server), 0);
    accept_it(p->server);
    CHECK_EQ(expect(p->channel, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
    CHECK_EQ(expect(p->channel, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
}

static void end_pair(struct pair *p)
{
    destroy(p->client);
    destroy(p->server);
    destroy(p->listener);
    rdma_destroy_event_channel(p->channel);
}

/* ---- other processes ---- */

/* Runs in a process of its own, before softhca has read the environment, so that it may change
 * that. */
static pid_t start(void (*run)(int fd), int fd)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        deadline(ALARM);
        run(fd);
        _exit(0);
    }
    return pid;
}

static void finish(pid_t pid)
{
    int status;

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
}

/* Waits for a byte, which shows that the other end has reached this point. */
static void await_byte(int fd)
{
    char c;

    CHECK(read(fd, &c, 1) == 1);
}

static void send_byte(int fd)
{
    CHECK(write(fd, "", 1) == 1);
}

static void rename_fabric(const char *suffix)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", getenv("SOFTHCA_FABRIC"), suffix);
    setenv("SOFTHCA_FABRIC", name, 1);
}

/* ---- cases ---- */

/* Requests beyond the queue of a listener wait outside, and enter it as the program reads. */
static void backlog(void)
{
    struct rdma_event_channel *ch = rdma_create_event_channel(), *out = rdma_create_event_channel();
    struct rdma_cm_id *listener = serve(ch, INADDR_ANY, 2), *client[3], *server[3];

    for (int i = 0; i < 3; i++)
        client[i] = request(out, own(0, 1));
    usleep(50000);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &server[i]), 0);
    CHECK(!ready(ch, 0) && !ready(out, 0));
    for (int i = 0; i < 3; i++) {
        destroy(client[i]);
        destroy(server[i]);
    }
    /* A request that gives up outside causes no event. */
    for (int i = 0; i < 3; i++)
        client[i] = request(out, own(0, 1));
    usleep(50000);
    destroy(client[2]);
    usleep(50000);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &server[i]), 0);
    CHECK(!ready(ch, 50));
    for (int i = 0; i < 2; i++) {
        destroy(client[i]);
        destroy(server[i]);
    }
    for (int i = 0; i < 3; i++)
        client[i] = request(out, own(0, 1));
    /* A listener that ends also rejects the request outside. */
    CHECK(ready(ch, HANG * 1000));
    usleep(50000);
    destroy(listener);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(expect(out, RDMA_CM_EVENT_REJECTED, NULL), 28);
    for (int i = 0; i < 3; i++)
        destroy(client[i]);
    rdma_destroy_event_channel(ch);
    rdma_destroy_event_channel(out);
}

/* A connection that we close ends even if a child has inherited everything. */
static void forked(int fd)
{
    struct pair p;
    pid_t child;
    int fds[2];

    (void)fd;
    CHECK(pipe(fds) == 0);
    connect_pair(&p);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        send_byte(fds[1]);
        pause();
        _exit(1);
    }
    /* It drops what it has inherited before its fork() returns. */
    await_byte(fds[0]);
    destroy(p.client);
    CHECK_EQ(expect(p.channel, RDMA_CM_EVENT_DISCONNECTED, NULL), 0);
    /* The number is free again too. */
    destroy(p.listener);
    p.listener = serve(p.channel, own(0, 1), 1);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

/* The server dies at three moments: before it read the request, before it accepted, after. */
static void dying_server(int fd)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *id;

    serve(ch, INADDR_ANY, 8);
    send_byte(fd);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &id), 0);
        if (i < 2)
            continue;
        accept_it(id);
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
    }
    send_byte(fd);
    pause();
}

static void server_killed(int fd)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *id[3];
    int fds[2], rejected = 0;
    pid_t pid;

    (void)fd;
    CHECK(pipe(fds) == 0);
    pid = start(dying_server, fds[1]);
    await_byte(fds[0]);
    for (int i = 0; i < 3; i++)
        id[i] = request(ch, own(0, 1));
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
    await_byte(fds[0]);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    for (int i = 0; i < 3; i++) {
        struct rdma_cm_event *e;

        CHECK(ready(ch, HANG * 1000) && rdma_get_cm_event(ch, &e) == 0);
        CHECK(e->event == RDMA_CM_EVENT_REJECTED || e->event == RDMA_CM_EVENT_DISCONNECTED);
        rejected += e->event == RDMA_CM_EVENT_REJECTED;
        rdma_ack_cm_event(e);
    }
    CHECK_EQ(rejected, 2);
    for (int i = 0; i < 3; i++)
        destroy(id[i]);
    /* And the number is free. */
    destroy(serve(ch, INADDR_ANY, 1));
}

enum { sharers = 4, numbers = 32 };

static void take_numbers(int fd)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct sockaddr_in a = at(own(0, 1), 0);
    uint16_t taken[numbers];

    for (int i = 0; i < numbers; i++) {
        struct rdma_cm_id *id = make_id(ch);

        CHECK(rdma_bind_addr(id, (struct sockaddr *)&a) == 0);
        taken[i] = ntohs(rdma_get_src_port(id));
    }
    CHECK(write(fd, taken, sizeof taken) == (ssize_t)sizeof taken);
    pause();
}

/* Numbers given out by processes at the same time are different; one that is taken can't be taken
 * by another process. */
static void shared_numbers(int fd)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    static bool seen[65536];
    uint16_t taken[numbers];
    struct sockaddr_in a;
    pid_t pid[sharers];
    int fds[2];

    (void)fd;
    CHECK(pipe(fds) == 0);
    for (int i = 0; i < sharers; i++)
        pid[i] = start(take_numbers, fds[1]);
    for (int i = 0; i < sharers; i++) {
        CHECK(read(fds[0], taken, sizeof taken) == (ssize_t)sizeof taken);
        for (int k = 0; k < numbers; k++) {
            CHECK(taken[k] >= 1024 && !seen[taken[k]]);
            seen[taken[k]] = true;
        }
    }
    a = at(own(0, 1), taken[0]);
    CHECK(rdma_bind_addr(make_id(ch), (struct sockaddr *)&a) == -1 && errno == EADDRINUSE);
    for (int i = 0; i < sharers; i++)
        CHECK(kill(pid[i], SIGKILL) == 0 && waitpid(pid[i], NULL, 0) == pid[i]);
    CHECK(rdma_bind_addr(make_id(ch), (struct sockaddr *)&a) == 0);
}

/* Each port has its address, and a wildcard listens at all of them. */
static void addresses(int fd)
{
    struct rdma_event_channel *ch;

    (void)fd;
    setenv("SOFTHCA_HCAS", "2", 1);
    setenv("SOFTHCA_PORTS", "2", 1);
    rename_fabric("-shape");
    ch = rdma_create_event_channel();
    serve(ch, INADDR_ANY, 8);
    for (int i = 0; i < 5; i++) {
        int hca = i == 4 ? 0 : i / 2, number = i == 4 ? 1 : i % 2 + 1;
        struct rdma_cm_id *id, *server;
        char name[16];

        id = request(ch, i == 4 ? INADDR_LOOPBACK : own(hca, number));
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &server), 0);
        snprintf(name, sizeof name, "softhca%d", hca);
        CHECK(strcmp(ibv_get_device_name(server->verbs->device), name) == 0);
        CHECK_EQ(server->port_num, number);
        CHECK_EQ(id->port_num, number);
        CHECK(id->verbs == server->verbs);
        destroy(id);
        destroy(server);
    }
}

/* ---- ports that are down ---- */

/* A host whose cable is unplugged at first: it listens and gets nothing until the cable is plugged
 * in. */
static void cut_server(int fd)
{
    struct rdma_event_channel *ch;
    struct rdma_cm_id *id;

    setenv("SOFTHCA_UNPLUGGED", "softhca0:1", 1);
    ch = rdma_create_event_channel();
    serve(ch, INADDR_ANY, 8);
    send_byte(fd);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &id), 0);
    accept_it(id);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
    send_byte(fd);
    pause();
}

static void cut(int fd)
{
    struct rdma_event_channel *ch;
    struct rdma_cm_id *id;
    char command[256];
    int fds[2];
    pid_t pid;

    (void)fd;
    CHECK(pipe(fds) == 0);
    pid = start(cut_server, fds[1]);
    ch = rdma_create_event_channel();
    await_byte(fds[0]);
    id = request(ch, own(0, 1));
    /* The time that an answer may take: 4.3 s. */
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_UNREACHABLE, NULL), -ETIMEDOUT);
    destroy(id);
    id = request(ch, own(0, 1));
    snprintf(command, sizeof command,
             "%s/contrib/softhca/softhca plug softhca0:1 in --pid %d >/dev/null",
             getenv("top_builddir") ? getenv("top_builddir") : ".", (int)pid);
    CHECK(system(command) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL), 0);
    await_byte(fds[0]);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void down(int fd)
{
    struct rdma_event_channel *ch;
    struct sockaddr_in a = at(own(0, 1), port);
    struct rdma_cm_id *id;

    (void)fd;
    setenv("SOFTHCA_DOWN", "softhca0:1", 1);
    rename_fabric("-down");
    ch = rdma_create_event_channel();
    id = make_id(ch);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 100) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ADDR_ERROR, NULL), -ENETUNREACH);
    destroy(id);
}

static void nobodys(void)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct sockaddr_in a = at(own(0, 7), port), far = at(0xc0000201, port);
    struct rdma_cm_id *id = make_id(ch);

    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 100) == -1);
    CHECK_EQ(errno, ENETUNREACH);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 100) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ADDR_ERROR, NULL), -ETIMEDOUT);
    a = at(own(0, 1), port);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 100) == 0);
    CHECK_EQ(expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, NULL), 0);
    destroy(id);
    rdma_destroy_event_channel(ch);
}

/* ---- threads and descriptors ---- */

enum { workers = 4, rounds = SANITIZED ? 5 : 20 };

static void *work(void *number)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    uint16_t mine = (uint16_t)(port + 1 + (int)(intptr_t)number);
    struct sockaddr_in a = at(own(0, 1), mine);

    for (int i = 0; i < rounds; i++) {
        struct rdma_cm_id *l = make_id(ch), *c = make_id(ch), *s;
        struct rdma_conn_param p = {.retry_count = 7};

        CHECK(rdma_bind_addr(l, (struct sockaddr *)&a) == 0 && rdma_listen(l, 1) == 0);
        CHECK(rdma_resolve_addr(c, NULL, (struct sockaddr *)&a, 1000) == 0);
        expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
        CHECK(rdma_resolve_route(c, 1000) == 0);
        expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
        make_qp(c);
        CHECK(rdma_connect(c, &p) == 0);
        CHECK_EQ(expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST, &s), 0);
        accept_it(s);
        expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL);
        expect(ch, RDMA_CM_EVENT_ESTABLISHED, NULL);
        CHECK(rdma_disconnect(c) == 0);
        expect(ch, RDMA_CM_EVENT_DISCONNECTED, NULL);
        destroy(s);
        destroy(c);
        destroy(l);
    }
    rdma_destroy_event_channel(ch);
    return NULL;
}

static void threads(void)
{
    pthread_t t[workers];

    for (int i = 0; i < workers; i++)
        CHECK(pthread_create(&t[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < workers; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void leaks(void)
{
    struct pair p;
    int before;

    connect_pair(&p);
    end_pair(&p);
    before = descriptors();
    for (int i = 0; i < 10; i++) {
        connect_pair(&p);
        end_pair(&p);
    }
    CHECK_EQ(descriptors(), before);
}

int main(void)
{
    char fabric[32];
    pid_t pid;

    deadline(ALARM);
    snprintf(fabric, sizeof fabric, "cm-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    /* Each in a process that has not used softhca before; one waits for seconds, beside the
     * others. */
    finish(start(forked, -1));
    finish(start(server_killed, -1));
    finish(start(shared_numbers, -1));
    pid = start(cut, -1);
    finish(start(addresses, -1));
    finish(start(down, -1));
    finish(pid);
    backlog();
    nobodys();
    threads();
    leaks();
    return 0;
}
