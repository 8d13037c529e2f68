/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_FAULT between two processes: one that is killed in the middle of a transfer; and traffic
 * under all harmless faults at once, which must not lose, double or reorder anything. */
#include "config.h"

#include "faults.h"

/* ---- kill ---- */

static struct end_options options;
static enum ibv_wr_opcode killing;
static size_t length = 100000;

static void open_pair(int fd, struct end *e, struct address *peer)
{
    end_open(e, &options);
    *peer = swap_addresses(fd, e);
    connect_to(e, peer);
}

static void killed_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    faults("kill:nth=1");
    open_pair(fd, &e, &peer);
    fill(e.buf, length, 1);
    meet(fd);
    post(&e, killing, 1, 0, length, IBV_SEND_SIGNALED, &peer, 0);
    _exit(1);
}

/* Half of the data is here, nothing completes, and other traffic continues. */
static void surviving_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    siginfo_t info;

    open_pair(fd, &e, &peer);
    CHECK_EQ(post_recv(&e, 7, 0, length), 0);
    meet(fd);
    CHECK_EQ(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(info.si_status, SIGKILL);
    if (killing != IBV_WR_RDMA_READ) {
        CHECK(filled(e.buf, length / 2, 1));
        CHECK(e.buf[length / 2 + 1] == 0 && e.buf[length - 1] == 0);
    }
    no_wc(e.rcq);
    CHECK_EQ(post_send(&e, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_WR_FLUSH_ERR);
    end_close(&e);
}

static void killed_while_writing(void)
{
    killing = IBV_WR_RDMA_WRITE;
    in_two(surviving_left, killed_right);
}

static void killed_while_sending(void)
{
    killing = IBV_WR_SEND;
    in_two(surviving_left, killed_right);
}

static void killed_while_sending_to_private_memory(void)
{
    killing = IBV_WR_SEND;
    options.private = true;
    length = 2000; /* would wait in the segment, all or nothing */
    in_two(surviving_left, killed_right);
}

static void killed_while_reading(void)
{
    killing = IBV_WR_RDMA_READ;
    in_two(surviving_left, killed_right);
}

/* ---- everything at once ---- */

#define PAIRS    4
#define MESSAGES 60

static void many_qps(int fd, struct end *e)
{
    struct address peer;

    end_open(&e[0], &(struct end_options){.cqe = PAIRS * MESSAGES,
                                          .send_wr = 2 * MESSAGES,
                                          .recv_wr = MESSAGES,
                                          .private = options.private});
    for (int i = 1; i < PAIRS; i++) {
        e[i] = e[0];
        end_qp(&e[i], &(struct end_options){.send_wr = 2 * MESSAGES, .recv_wr = MESSAGES});
    }
    for (int i = 0; i < PAIRS; i++) {
        peer = swap_addresses(fd, &e[i]);
        to_init(e[i].qp);
        to_rtr(e[i].qp, &peer);
        to_rts(&e[i], 8, 7); /* lost packets are sent again after 1 ms */
    }
}

/* Where message k of queue pair i goes out, comes in. */
static size_t out_at(int i, int k)
{
    return (size_t)(i * MESSAGES + k) * 1024;
}

static size_t in_at(int i, int k)
{
    return BUF_BYTES / 2 + out_at(i, k);
}

static void exchange_all(struct end *e)
{
    int sent = 0, next[PAIRS] = {0}, got = 0;
    struct ibv_wc wc;

    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < PAIRS; i++)
            CHECK_EQ(post_send(&e[i], (uint64_t)k, out_at(i, k), 1000, 0), 0);
    while (sent < PAIRS * MESSAGES || got < PAIRS * MESSAGES) {
        if (ibv_poll_cq(e[0].scq, 1, &wc) == 1) {
            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            sent++;
        }
        if (ibv_poll_cq(e[0].rcq, 1, &wc) == 1) {
            int i = (int)(wc.wr_id / MESSAGES), k = (int)(wc.wr_id % MESSAGES);

            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            CHECK_EQ(wc.qp_num, e[i].qp->qp_num);
            CHECK_EQ(k, next[i]++);
            CHECK(filled(e[0].buf + in_at(i, k), 1000, wc.wr_id));
            got++;
        }
    }
}

static void stormy(int fd, pid_t other)
{
    struct end e[PAIRS];

    (void)other;
    faults("delay:us=0-300,p=0.1;drop:p=0.05;rnr:ms=1,p=0.05;reorder:p=0.3;late:us=100,every=7");
    many_qps(fd, e);
    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < PAIRS; i++) {
            fill(e[0].buf + out_at(i, k), 1000, (unsigned)(i * MESSAGES + k));
            CHECK_EQ(post_recv(&e[i], (uint64_t)(i * MESSAGES + k), in_at(i, k), 1000), 0);
        }
    meet(fd);
    exchange_all(e);
    meet(fd);
    for (int i = 1; i < PAIRS; i++)
        CHECK_EQ(ibv_destroy_qp(e[i].qp), 0);
    end_close(&e[0]);
}

static void a_storm_loses_nothing(void)
{
    in_two(stormy, stormy);
}

static void a_storm_over_private_memory_loses_nothing(void)
{
    options.private = true;
    in_two(stormy, stormy);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(killed_while_writing),
        CASE(killed_while_sending),
        CASE(killed_while_sending_to_private_memory),
        CASE(killed_while_reading),
        CASE(a_storm_loses_nothing),
        CASE(a_storm_over_private_memory_loses_nothing),
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
