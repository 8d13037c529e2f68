/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers of librdmacm to every call of a program, in and out of order, as text: events with
 * their contents, errors, states of queue pairs. softhca here and the kernel in tests/vm must give
 * the same text (cm_events.txt), so that the two can't diverge. usage: cm_events ADDRESS, one of a
 * port of this host */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { port = 7471, hang_ms = 60000, nothing_ms = 50 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct sockaddr_in here;

struct side {
    const char *name;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id, *listener;
    struct rdma_cm_event *event;
};

static struct side client = {.name = "client"}, server = {.name = "server"};

static void show(const char *what, int status)
{
    if (status == 0)
        printf("%s: 0\n", what);
    else
        printf("%s: %d %s\n", what, status, strerrorname_np(errno));
}
#define SHOW(call) show(#call, call)

/* Without flushes (IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT, not in every <infiniband/verbs.h>):
 * kernels since 6.2 allow them where a device has them. */
static unsigned access_of(const struct ibv_qp_attr *a)
{
    return a->qp_access_flags & ~0x300u;
}

/* ---- events ---- */

static bool awaited(struct side *s, int ms)
{
    struct pollfd p = {.fd = s->channel->fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static const char *event_name(enum rdma_cm_event_type type)
{
    return rdma_event_str(type) + strlen("RDMA_CM_EVENT_");
}

static void show_connection(const struct rdma_conn_param *c)
{
    if (!c->private_data_len)
        return;
    printf(" data %u '%.8s'", c->private_data_len, (const char *)c->private_data);
    if (c->qp_num)
        printf(" resources %u depth %u flow %u retry %u rnr %u srq %u", c->responder_resources,
               c->initiator_depth, c->flow_control, c->retry_count, c->rnr_retry_count, c->srq);
}

static void show_datagram(const struct rdma_ud_param *u)
{
    printf(" data %u '%.8s'", u->private_data_len, (const char *)u->private_data);
    if (u->qp_num)
        printf(" qp %s qkey %#x port %u",
               server.id->qp && u->qp_num == server.id->qp->qp_num ? "right" : "wrong", u->qkey,
               u->ah_attr.port_num);
}

/* Leaves the event in s->event until the next. */
static void take(struct side *s)
{
    struct rdma_cm_event *e;

    if (s->event)
        rdma_ack_cm_event(s->event);
    s->event = NULL;
    CHECK(awaited(s, hang_ms));
    CHECK(rdma_get_cm_event(s->channel, &e) == 0);
    s->event = e;
    printf("  %s %s", s->name, event_name(e->event));
    if (e->status)
        printf(" status %d", e->status);
    if (e->id->qp_type == IBV_QPT_UD)
        show_datagram(&e->param.ud);
    else
        show_connection(&e->param.conn);
    printf("\n");
    if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        CHECK(e->listen_id == s->listener && e->id != s->listener && e->id->verbs);
        CHECK(e->id->context == s->listener->context && e->id->channel == s->channel);
        s->id = e->id;
    } else {
        CHECK(e->id == s->id);
    }
}

static void nothing(struct side *s)
{
    printf("  %s %s\n", s->name, awaited(s, nothing_ms) ? "has an event" : "has no event");
}

static void done(struct side *s)
{
    if (s->event)
        rdma_ack_cm_event(s->event);
    s->event = NULL;
}

/* ---- the steps that most cases begin with ---- */

static struct sockaddr *address(uint16_t number)
{
    here.sin_port = htons(number);
    return (struct sockaddr *)&here;
}

static void begin(const char *name, enum rdma_port_space ps)
{
    printf("%s\n", name);
    CHECK(client.channel = rdma_create_event_channel());
    CHECK(server.channel = rdma_create_event_channel());
    CHECK(rdma_create_id(server.channel, &server.listener, &server, ps) == 0);
    CHECK(rdma_create_id(client.channel, &client.id, &client, ps) == 0);
    server.id = NULL;
}

static void end_id(struct rdma_cm_id **id)
{
    if (!*id)
        return;
    if ((*id)->qp)
        rdma_destroy_qp(*id);
    CHECK(rdma_destroy_id(*id) == 0);
    *id = NULL;
}

static void end(void)
{
    done(&client);
    done(&server);
    end_id(&client.id);
    end_id(&server.id);
    end_id(&server.listener);
    rdma_destroy_event_channel(client.channel);
    rdma_destroy_event_channel(server.channel);
}

static void serve(int backlog)
{
    CHECK(rdma_bind_addr(server.listener, address(port)) == 0);
    CHECK(rdma_listen(server.listener, backlog) == 0);
}

static void resolve(struct side *s)
{
    CHECK(rdma_resolve_addr(s->id, NULL, address(port), 2000) == 0);
    take(s);
    CHECK(rdma_resolve_route(s->id, 2000) == 0);
    take(s);
    CHECK(s->id->route.num_paths == 1 && s->id->route.path_rec && s->id->verbs);
}

static int try_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {
        .qp_type = id->qp_type,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

    if (rdma_create_qp(id, NULL, &init) != 0)
        return -1;
    CHECK(id->qp && id->send_cq && id->recv_cq && id->pd && id->send_cq_channel);
    CHECK(init.send_cq == id->send_cq);
    return 0;
}

static void make_qp(struct rdma_cm_id *id)
{
    CHECK(try_qp(id) == 0);
}

static struct rdma_conn_param param(const char *data)
{
    return (struct rdma_conn_param){.private_data = data,
                                    .private_data_len = (uint8_t)strlen(data),
                                    .responder_resources = 2,
                                    .initiator_depth = 4,
                                    .flow_control = 1,
                                    .retry_count = 6,
                                    .rnr_retry_count = 4};
}

static int plain_accept(struct rdma_cm_id *id)
{
    struct rdma_conn_param p = param("welcome");

    return rdma_accept(id, &p);
}

static int plain_connect(struct rdma_cm_id *id)
{
    struct rdma_conn_param p = param("hello");

    return rdma_connect(id, &p);
}

static void request(const char *data)
{
    struct rdma_conn_param p = param(data);

    make_qp(client.id);
    CHECK(rdma_connect(client.id, &p) == 0);
    take(&server);
}

static void accept_it(const char *data)
{
    struct rdma_conn_param p = param(data);

    p.responder_resources = 4;
    p.initiator_depth = 2;
    if (!server.id->qp)
        make_qp(server.id);
    CHECK(rdma_accept(server.id, &p) == 0);
}

static void show_qp(struct side *s)
{
    static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;

    CHECK(ibv_query_qp(s->id->qp, &a, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_QP_RD_ATOMIC,
                       &init) == 0);
    printf("  %s queue pair %s", s->name, states[a.qp_state]);
    if (a.qp_state == IBV_QPS_RTS && s->id->qp_type == IBV_QPT_RC)
        printf(" access %#x reads %u, %u from outside, retry %u, %u rnr", access_of(&a),
               a.max_rd_atomic, a.max_dest_rd_atomic, a.retry_cnt, a.rnr_retry);
    printf("\n");
}

static void establish(void)
{
    serve(0);
    resolve(&client);
    request("hello");
    accept_it("welcome");
    take(&client);
    take(&server);
}

/* ---- cases ---- */

static void case_connection(void)
{
    begin("a connection", RDMA_PS_TCP);
    establish();
    CHECK(rdma_get_src_port(server.id) == htons(port) &&
          rdma_get_dst_port(client.id) == htons(port));
    CHECK(rdma_get_dst_port(server.id) == rdma_get_src_port(client.id) &&
          rdma_get_src_port(client.id));
    show_qp(&client);
    show_qp(&server);
    SHOW(rdma_disconnect(client.id));
    take(&server);
    show_qp(&client);
    show_qp(&server);
    nothing(&client);
    SHOW(rdma_disconnect(server.id));
    take(&client);
    take(&client);
    take(&server);
    SHOW(rdma_disconnect(client.id));
    nothing(&client);
    end();
}

static void case_without_qp(void)
{
    struct rdma_conn_param p = param("hello");

    begin("a client that has its queue pair elsewhere", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    p.qp_num = 4711;
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    CHECK(server.event->param.conn.qp_num == 4711);
    accept_it("welcome");
    take(&client);
    CHECK(client.event->param.conn.qp_num == server.id->qp->qp_num);
    nothing(&server);
    SHOW(rdma_establish(client.id));
    take(&server);
    nothing(&client);
    end();
}

static void case_rejected(void)
{
    begin("rejected by the program", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    request("hello");
    SHOW(rdma_reject(server.id, "no", 3));
    take(&client);
    show_qp(&client);
    SHOW(rdma_reject(server.id, "no", 3));
    SHOW(plain_accept(server.id));
    SHOW(plain_connect(client.id));
    nothing(&server);
    end();
}

static void case_nobody(void)
{
    struct rdma_conn_param p = param("hello");

    begin("nobody listens", RDMA_PS_TCP);
    resolve(&client);
    make_qp(client.id);
    SHOW(rdma_connect(client.id, &p));
    take(&client);
    end();
}

static void case_dropped_request(void)
{
    begin("a request is destroyed", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    request("hello");
    done(&server);
    end_id(&server.id);
    take(&client);
    end();
}

static void case_unread_request(void)
{
    struct rdma_conn_param p = param("hello");

    begin("a listener is destroyed with an unread request", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    make_qp(client.id);
    SHOW(rdma_connect(client.id, &p));
    CHECK(awaited(&server, hang_ms));
    end_id(&server.listener);
    nothing(&server);
    take(&client);
    end();
}

static void case_lost_client(void)
{
    begin("a client gives up", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    request("hello");
    done(&client);
    end_id(&client.id);
    nothing(&server);
    SHOW(try_qp(server.id));
    SHOW(plain_accept(server.id));
    end();
}

static void case_destroyed(void)
{
    begin("one end of a connection is destroyed", RDMA_PS_TCP);
    establish();
    done(&client);
    end_id(&client.id);
    take(&server);
    SHOW(rdma_disconnect(server.id));
    take(&server);
    end();
}

static void case_crossing(void)
{
    begin("both ends disconnect", RDMA_PS_TCP);
    establish();
    rdma_disconnect(server.id);
    rdma_disconnect(client.id);
    take(&client);
    take(&server);
    end();
}

static void case_datagram(void)
{
    struct rdma_conn_param p = param("hello");

    begin("a datagram service", RDMA_PS_UDP);
    serve(0);
    resolve(&client);
    make_qp(client.id);
    show_qp(&client);
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    make_qp(server.id);
    p = param("welcome");
    SHOW(rdma_accept(server.id, &p));
    take(&client);
    nothing(&server);
    SHOW(rdma_disconnect(client.id));
    end();

    begin("a datagram service that refuses", RDMA_PS_UDP);
    serve(0);
    resolve(&client);
    make_qp(client.id);
    p = param("hello");
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    SHOW(rdma_reject(server.id, "no", 3));
    take(&client);
    end();

    begin("a datagram service that is not there", RDMA_PS_UDP);
    resolve(&client);
    make_qp(client.id);
    SHOW(rdma_connect(client.id, &p));
    take(&client);
    end();
}

static void case_out_of_turn(void)
{
    struct rdma_conn_param p = param("hello");

    begin("calls out of turn", RDMA_PS_TCP);
    /* Without a device most calls crash librdmacm, so they are not tested. */
    SHOW(rdma_reject(client.id, NULL, 0));
    SHOW(rdma_disconnect(client.id));
    SHOW(rdma_bind_addr(server.listener, address(port)));
    SHOW(rdma_bind_addr(server.listener, address(port)));
    SHOW(rdma_bind_addr(client.id, address(port)));
    SHOW(rdma_resolve_route(server.listener, 2000));
    SHOW(rdma_listen(server.listener, 1));
    SHOW(rdma_listen(server.listener, 1));
    SHOW(rdma_resolve_addr(server.listener, NULL, address(port), 2000));
    SHOW(rdma_resolve_addr(client.id, NULL, address(port), 2000));
    take(&client);
    SHOW(rdma_resolve_addr(client.id, NULL, address(port), 2000));
    SHOW(rdma_connect(client.id, &p));
    SHOW(rdma_resolve_route(client.id, 2000));
    take(&client);
    SHOW(rdma_resolve_route(client.id, 2000));
    SHOW(rdma_connect(client.id, NULL));
    SHOW(rdma_listen(client.id, 1));
    SHOW(rdma_notify(client.id, IBV_EVENT_COMM_EST));
    nothing(&client);
    nothing(&server);
    end();
}

static void case_limits(void)
{
    static const char text[256];
    struct rdma_conn_param p = {.private_data = text, .retry_count = 7};

    begin("limits of private data", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    make_qp(client.id);
    p.private_data_len = 57;
    SHOW(rdma_connect(client.id, &p));
    p.private_data_len = 56;
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    SHOW(rdma_reject(server.id, text, 149));
    SHOW(try_qp(server.id));
    p.private_data_len = 197;
    SHOW(rdma_accept(server.id, &p));
    end();
    begin("limits of a datagram's private data", RDMA_PS_UDP);
    serve(0);
    resolve(&client);
    p.private_data_len = 181;
    SHOW(rdma_connect(client.id, &p));
    p.private_data_len = 180;
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    p.private_data_len = 137;
    SHOW(rdma_accept(server.id, &p));
    end();
}

static void case_addresses(void)
{
    struct sockaddr_in a = here;

    begin("addresses", RDMA_PS_TCP);
    a.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1: nobody's (RFC 5737) */
    SHOW(rdma_bind_addr(client.id, (struct sockaddr *)&a));
    a.sin_family = AF_UNIX;
    SHOW(rdma_bind_addr(client.id, (struct sockaddr *)&a));
    SHOW(rdma_listen(server.listener, 1));
    CHECK(rdma_get_src_port(server.listener) != 0);
    SHOW(rdma_bind_addr(client.id, address(0)));
    CHECK(rdma_get_src_port(client.id) != 0 && client.id->verbs && client.id->port_num == 1);
    end();
    begin("a wildcard and an address", RDMA_PS_TCP);
    a = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    SHOW(rdma_bind_addr(server.listener, (struct sockaddr *)&a));
    CHECK(!server.listener->verbs);
    SHOW(rdma_bind_addr(client.id, address(port)));
    SHOW(rdma_listen(server.listener, 1));
    resolve(&client);
    request("hello");
    CHECK(server.id->port_num == 1);
    end();
}

static void case_attributes(void)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR};
    struct rdma_conn_param p = param("hello");
    struct ibv_qp_attr a;
    int mask;

    begin("attributes of a queue pair", RDMA_PS_TCP);
    serve(0);
    resolve(&client);
    for (int i = 0; i < 3; i++) {
        a = (struct ibv_qp_attr){.qp_state = states[i]};
        mask = 0;
        SHOW(rdma_init_qp_attr(client.id, &a, &mask));
        printf("  mask %#x access %#x\n", mask, access_of(&a));
    }
    p.qp_num = 17;
    SHOW(rdma_connect(client.id, &p));
    take(&server);
    for (int i = 0; i < 3; i++) {
        a = (struct ibv_qp_attr){.qp_state = states[i]};
        SHOW(rdma_init_qp_attr(server.id, &a, &mask));
        printf("  mask %#x access %#x peer %u reads %u, %u retry %u rnr %u\n", mask, access_of(&a),
               a.dest_qp_num, a.max_rd_atomic, a.max_dest_rd_atomic, a.retry_cnt, a.rnr_retry);
    }
    end();
}

static void case_migrated(void)
{
    struct rdma_event_channel *other = rdma_create_event_channel(), *old;

    begin("an identifier moves to another channel", RDMA_PS_TCP);
    serve(0);
    CHECK(rdma_resolve_addr(client.id, NULL, address(port), 2000) == 0);
    CHECK(awaited(&client, hang_ms));
    SHOW(rdma_migrate_id(client.id, other));
    nothing(&client);
    old = client.channel;
    client.channel = other;
    CHECK(client.id->channel == other);
    take(&client);
    rdma_destroy_event_channel(old);
    end();
}

static void case_descriptor(void)
{
    struct rdma_cm_event *e;

    begin("a channel that does not wait", RDMA_PS_TCP);
    CHECK(fcntl(client.channel->fd, F_SETFL, O_NONBLOCK) == 0);
    SHOW(rdma_get_cm_event(client.channel, &e));
    CHECK(rdma_resolve_addr(client.id, NULL, address(port), 2000) == 0);
    take(&client);
    SHOW(rdma_get_cm_event(client.channel, &e));
    end();
}

/* The other end is a process that is killed. */
static void killed(const char *name, bool established)
{
    pid_t pid;
    int fds[2];
    char c;

    CHECK(pipe(fds) == 0);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(freopen("/dev/null", "w", stdout));
        begin("", RDMA_PS_TCP);
        CHECK(read(fds[0], &c, 1) == 1);
        resolve(&client);
        make_qp(client.id);
        struct rdma_conn_param p = param("hello");
        CHECK(rdma_connect(client.id, &p) == 0);
        take(&client);
        pause();
        _exit(1);
    }
    begin(name, RDMA_PS_TCP);
    serve(0);
    CHECK(write(fds[1], "", 1) == 1);
    take(&server);
    if (established) {
        accept_it("welcome");
        take(&server);
    }
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    if (established)
        take(&server);
    nothing(&server);
    if (!established) {
        SHOW(try_qp(server.id));
        SHOW(plain_accept(server.id));
    }
    end();
    close(fds[0]);
    close(fds[1]);
}

static void unbuffered(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
}

int main(int argc, char **argv)
{
    if (argc != 2 || inet_pton(AF_INET, argv[1], &here.sin_addr) != 1) {
        fprintf(stderr, "usage: cm_events ADDRESS\n");
        return 2;
    }
    here.sin_family = AF_INET;
    unbuffered();
    alarm(170);
    killed("a client is killed", true);
    killed("a client is killed while its request waits", false);
    case_connection();
    case_without_qp();
    case_rejected();
    case_nobody();
    case_dropped_request();
    case_unread_request();
    case_lost_client();
    case_destroyed();
    case_crossing();
    case_datagram();
    case_out_of_turn();
    case_limits();
    case_addresses();
    case_attributes();
    case_migrated();
    case_descriptor();
    printf("end\n");
    return 0;
}
