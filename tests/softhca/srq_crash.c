/* SPDX-License-Identifier: BSD-3-Clause */
/* Several processes on one shared receive queue, and senders that die: at any moment, and always at
 * the same place in the middle of a message, where the receive is taken, half of the bytes have
 * moved and no completion exists. Tests the fate of that receive. */
#include "config.h"

#include "harness.h"
#include "srq.h"

#define FEW     4 /* receives of the queue that loses one */
#define SENDERS 4
#define EACH    400
#define DEPTH   64
#define BYTES   1024

/* ---- several processes ---- */

struct message {
    uint32_t sender, number;
    char body[BYTES - 8];
};

static void send_all(struct end *e, uint32_t me, uint32_t count)
{
    struct message *m = (struct message *)(void *)e->buf;
    uint32_t sent = 0, done = 0;

    while (done < count) {
        struct ibv_wc wc;
        size_t at = sent % 16;

        if (sent < count && sent - done < 16) {
            m[at].sender = me;
            m[at].number = sent;
            fill(m[at].body, sizeof m[at].body, me * 1000 + sent);
            CHECK_EQ(post_send(e, sent, at * BYTES, BYTES, 0), 0);
            sent++;
        }
        while (ibv_poll_cq(e->scq, 1, &wc) == 1) {
            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            done++;
        }
    }
}

static void sender(int fd, uint32_t me, uint32_t count)
{
    struct address to;
    struct end e;

    deadline(ALARM);
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    send_all(&e, me, count);
    meet(fd);
    exit(0);
}

/* The receiver and one queue pair for each sender; fd[i] leads to sender i. */
struct server {
    struct end e;
    struct ibv_qp *qp[SENDERS];
    int fd[SENDERS];
    pid_t pid[SENDERS];
    uint32_t next[SENDERS];
};

static void start_senders(struct server *s, uint32_t count)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        int fds[2];

        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        s->fd[i] = fds[0];
        s->pid[i] = fork();
        CHECK(s->pid[i] >= 0);
        if (s->pid[i] == 0)
            sender(fds[1], i, count);
        close(fds[1]);
    }
}

static void serve(struct server *s, bool private)
{
    end_open(&s->e, &(struct end_options){.no_qp = true, .private = private});
    s->e.srq = new_srq(&s->e, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK_EQ(post_srq(&s->e, i, (size_t)i * BYTES, BYTES), 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        struct end one = s->e;
        struct address from;

        end_qp(&one, &(struct end_options){0});
        s->qp[i] = one.qp;
        from = swap_addresses(s->fd[i], &one);
        connect_to(&one, &from);
    }
}

static uint32_t receive_one(struct server *s)
{
    struct ibv_wc wc = wait_wc(s->e.rcq);
    const struct message *m = (const void *)(s->e.buf + wc.wr_id * BYTES);
    uint32_t from = m->sender;

    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.byte_len, BYTES);
    CHECK(from < SENDERS);
    CHECK_EQ(wc.qp_num, s->qp[from]->qp_num);
    CHECK_EQ(m->number, s->next[from]++);
    CHECK(filled(m->body, sizeof m->body, from * 1000 + m->number));
    CHECK_EQ(post_srq(&s->e, wc.wr_id, wc.wr_id * BYTES, BYTES), 0);
    return from;
}

static void end_server(struct server *s)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        if (s->qp[i])
            CHECK_EQ(ibv_destroy_qp(s->qp[i]), 0);
    CHECK_EQ(ibv_destroy_srq(s->e.srq), 0);
    end_close(&s->e);
}

static void many_processes(bool private)
{
    struct server s = {0};

    start_senders(&s, EACH);
    serve(&s, private);
    for (uint32_t i = 0; i < SENDERS; i++)
        meet(s.fd[i]);
    for (uint32_t n = 0; n < SENDERS * EACH; n++)
        receive_one(&s);
    for (uint32_t i = 0; i < SENDERS; i++) {
        int status;

        meet(s.fd[i]);
        CHECK_EQ(waitpid(s.pid[i], &status, 0), s.pid[i]);
        CHECK_EQ(status, 0);
        CHECK_EQ(s.next[i], EACH);
    }
    end_server(&s);
}

static void many_shared(void)
{
    many_processes(false);
}

static void many_private(void)
{
    many_processes(true);
}

/* Fills the queue and uses all receives: exactly as many messages as its depth must arrive. */
static void expect_depth(struct end *e)
{
    struct end to = *e, from;

    while (post_srq(e, 0, 0, BYTES) == 0)
        ;
    end_open(&from, NULL);
    to.psn = from.psn + 1;
    end_qp(&to, &(struct end_options){0});
    connect_pair(&from, &to);
    for (uint32_t i = 0; i < DEPTH; i++) {
        CHECK_EQ(post_send(&from, i, 0, 64, 0), 0);
        CHECK_EQ(wait_wc(from.scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(wait_wc(to.rcq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(ibv_destroy_qp(to.qp), 0);
    end_close(&from);
}

/* Senders are killed in the middle of their load. The others continue, and when the queue pairs of
 * the dead are destroyed every receive is free again. */
static void killed_senders(void)
{
    struct server s = {0};

    start_senders(&s, 1000000);
    serve(&s, true);
    for (uint32_t i = 0; i < SENDERS; i++)
        meet(s.fd[i]);
    for (uint32_t victim = 0; victim < SENDERS; victim++) {
        int status;

        for (int n = 0; n < 300; n++)
            receive_one(&s);
        kill(s.pid[victim], SIGKILL);
        CHECK_EQ(waitpid(s.pid[victim], &status, 0), s.pid[victim]);
        for (int n = 0; n < 300 && victim + 1 < SENDERS; n++)
            receive_one(&s);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        CHECK_EQ(ibv_destroy_qp(s.qp[i]), 0);
        s.qp[i] = NULL;
    }
    expect_depth(&s.e);
    expect_all_free(&s.e, DEPTH);
    end_server(&s);
}

/* ---- one death in the middle of a message ---- */

/* Sends until it is killed inside its third message. */
static void victim(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    setenv("SOFTHCA_FAULT", "kill:op=send,nth=3", 1);
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    fill(e.buf, 2000, 3);
    for (;;) {
        CHECK_EQ(post_send(&e, 1, 0, 2000, 0), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
}

static void wait_for_death(pid_t pid)
{
    siginfo_t how;

    CHECK_EQ(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT), 0);
    CHECK_EQ(how.si_code, CLD_KILLED);
}

static void open_server(struct end *e, int type)
{
    end_open(e, &(struct end_options){.no_qp = true});
    e->srq = new_srq(e, FEW);
    for (uint32_t i = 0; i < FEW; i++)
        CHECK_EQ(post_srq(e, i, (size_t)i * 4096, 4096), 0);
    end_qp(e, &(struct end_options){.type = type});
}

/* Starts a victim and waits for its death: two messages have arrived, the third was begun. */
static void lose_one(struct end *e, int fd, pid_t other)
{
    struct address from;

    open_server(e, IBV_QPT_RC);
    from = swap_addresses(fd, e);
    connect_to(e, &from);
    meet(fd);
    wait_for_death(other);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(wait_wc(e->rcq).wr_id, i);
        CHECK(filled(e->buf + i * 4096, 2000, 3));
    }
    no_wc(e->rcq);
    /* two free, one posted, one taken by the dead sender */
    CHECK_EQ(post_srq(e, 10, 0, 64), 0);
    CHECK_EQ(post_srq(e, 11, 0, 64), 0);
    CHECK_EQ(post_srq(e, 12, 0, 64), ENOMEM);
}

static void close_server(struct end *e)
{
    if (e->qp)
        CHECK_EQ(ibv_destroy_qp(e->qp), 0);
    e->qp = NULL;
    CHECK_EQ(ibv_destroy_srq(e->srq), 0);
    end_close(e);
}

static void flushed_by_error(int fd, pid_t other)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    struct end e;

    lose_one(&e, fd, other);
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
    wc = wait_wc(e.rcq);
    CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wc.wr_id, 2);
    no_wc(e.rcq);
    CHECK_EQ(post_srq(&e, 12, 0, 64), 0);
    CHECK_EQ(post_srq(&e, 13, 0, 64), ENOMEM);
    close_server(&e);
}

static void freed_by_destroy(int fd, pid_t other)
{
    struct end e;

    lose_one(&e, fd, other);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    CHECK_EQ(post_srq(&e, 12, 0, 64), 0);
    CHECK_EQ(post_srq(&e, 13, 0, 64), ENOMEM);
    close_server(&e);
}

/* ---- datagrams: another sender comes, and gets the receive that was begun ---- */

static void to_ready(struct end *e)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void send_datagram(struct end *e, struct ibv_ah *ah, uint32_t qpn)
{
    struct ibv_sge sge = sge_of(e, 0, 1000);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = 0x11111;
    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
}

static void datagrams(struct end *e, const struct address *to, int count)
{
    struct ibv_ah_attr path = path_to(to);
    struct ibv_ah *ah = ibv_create_ah(e->pd, &path);

    CHECK(ah != NULL);
    while (count-- > 0)
        send_datagram(e, ah, to->qpn);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
}

static void ud_victim(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    setenv("SOFTHCA_FAULT", "kill:op=send,nth=3", 1);
    end_open(&e, &(struct end_options){.type = IBV_QPT_UD});
    to = swap_addresses(fd, &e);
    to_ready(&e);
    datagrams(&e, &to, 3);
}

static void taken_again(int fd, pid_t other)
{
    struct address to;
    struct end e, next;

    open_server(&e, IBV_QPT_UD);
    to_ready(&e);
    swap_addresses(fd, &e);
    wait_for_death(other);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(wait_wc(e.rcq).wr_id, i);
    end_open(&next, &(struct end_options){.type = IBV_QPT_UD});
    to_ready(&next);
    to = address_of(&e);
    fill(next.buf, 1000, 9);
    datagrams(&next, &to, 2);
    for (unsigned i = 2; i < 4; i++) {
        CHECK_EQ(wait_wc(e.rcq).wr_id, i);
        CHECK(filled(e.buf + i * 4096 + 40, 1000, 9));
    }
    expect_all_free(&e, FEW);
    end_close(&next);
    close_server(&e);
}

static void error(void)
{
    in_two(flushed_by_error, victim);
}

static void destroy(void)
{
    in_two(freed_by_destroy, victim);
}

static void next_sender(void)
{
    in_two(taken_again, ud_victim);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"many_shared", many_shared},
        {"many_private", many_private},
        {"killed_senders", killed_senders},
        {"error", error},
        {"destroy", destroy},
        {"next_sender", next_sender},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
