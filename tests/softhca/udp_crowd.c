/* SPDX-License-Identifier: BSD-3-Clause */
/* Many into one: processes that all write to one receiver whose socket buffer is of the size that
 * every host allows without a setting. All bytes arrive, each sender succeeds, and few packets have
 * to be sent again; with one sender nothing is lost. Owns nothing; a process for each end. */
#include "harness.h"

#include <dlfcn.h>

enum {
    default_buffer = 212992, /* net.core.rmem_max where nobody changed it */
    region = 1 << 16,        /* of each sender */
    most_senders = 16,
};

/* Replaces the C library's function, because the host's limit may be larger. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    static int (*next)(int, int, int, const void *, socklen_t);
    int room = default_buffer;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "setsockopt");
    if (level == SOL_SOCKET && name == SO_RCVBUFFORCE) {
        errno = EPERM;
        return -1;
    }
    if (level == SOL_SOCKET && name == SO_RCVBUF)
        value = &room;
    return next(fd, level, name, value, length);
}

static void pipe_move(int fd, void *bytes, size_t n, bool out)
{
    CHECK_EQ(out ? write(fd, bytes, n) : read(fd, bytes, n), n);
}

static void connect_with(struct end *e, const struct address *to, enum ibv_mtu mtu)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = mtu,
                            .dest_qp_num = to->qpn,
                            .rq_psn = to->psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .ah_attr = path_to(to)};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             0);
    to_rts(e, 14, 7);
}

static void crowd_connect(int fd, struct end *e, struct address *other, enum ibv_mtu mtu)
{
    struct address own = address_of(e);

    pipe_move(fd, &own, sizeof own, true);
    pipe_move(fd, other, sizeof *other, false);
    connect_with(e, other, mtu);
}

static struct ibv_wc post_write(struct end *e, const struct address *to, int number, bool wait)
{
    struct ibv_sge s = {(uintptr_t)e->buf, region, e->mr->lkey};
    struct ibv_send_wr *bad, w = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    w.send_flags = IBV_SEND_SIGNALED;
    w.wr.rdma.remote_addr = to->addr + (uint64_t)number * region;
    w.wr.rdma.rkey = to->rkey;
    CHECK_EQ(ibv_post_send(e->qp, &w, &bad), 0);
    return wait ? wait_wc(e->scq) : (struct ibv_wc){.status = IBV_WC_SUCCESS};
}

static void sender(int fd, int number, int writes, enum ibv_mtu mtu)
{
    struct address to;
    struct end e;

    deadline(ALARM);
    end_open(&e, NULL);
    crowd_connect(fd, &e, &to, mtu);
    memset(e.buf, number + 1, region);
    pipe_move(fd, &number, sizeof number, false); /* all begin together */
    for (int i = 0; i < writes; i++)
        CHECK_EQ(post_write(&e, &to, number, i >= 3).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    pipe_move(fd, &number, sizeof number, true);
    end_close(&e);
    exit(0);
}

static void receiver(const int *fd, int senders, enum ibv_mtu mtu)
{
    static struct end ends[most_senders];
    struct address to;
    int number;

    deadline(ALARM);
    for (int i = 0; i < senders; i++) {
        end_open(&ends[i], NULL);
        ends[i].psn += i;
    }
    for (int i = 0; i < senders; i++) {
        struct address own = address_of(&ends[i]);

        pipe_move(fd[i], &to, sizeof to, false);
        pipe_move(fd[i], &own, sizeof own, true);
        connect_with(&ends[i], &to, mtu);
    }
    for (int i = 0; i < senders; i++)
        pipe_move(fd[i], &i, sizeof i, true);
    for (int i = 0; i < senders; i++) {
        pipe_move(fd[i], &number, sizeof number, false);
        for (int at = 0; at < region; at++)
            CHECK_EQ(ends[i].buf[number * region + at], number + 1);
    }
    for (int i = 0; i < 100; i++) /* takes what is left in the socket, such as repeated packets */
        no_wc(ends[0].rcq);
    for (int i = 0; i < senders; i++)
        end_close(&ends[i]);
    exit(0);
}

/* ---- counters ---- */

/* Of all processes, or of those whose line has another word. */
static long sum(const char *file, const char *name, const char *only)
{
    FILE *f = fopen(file, "r");
    char line[4096], *at;
    long all = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f))
        if ((!only || strstr(line, only)) && (at = strstr(line, name)))
            all += strtol(at + strlen(name), NULL, 10);
    fclose(f);
    return all;
}

/* The packets that senders sent and the receiver, which writes nothing, did not get. */
static long lost(const char *file, int writes)
{
    char sender_line[64];

    snprintf(sender_line, sizeof sender_line, " writes %d ", writes);
    return sum(file, " sent ", sender_line) - sum(file, " received ", " writes 0 ");
}

struct result {
    double repeated; /* percent */
    long lost;
};

static struct result crowd(int senders, int writes, enum ibv_mtu mtu)
{
    char stats[] = "/tmp/udp_crowd.XXXXXX";
    int pair[most_senders][2], far[most_senders], file = mkstemp(stats), status;
    double started = seconds();
    struct result r;

    CHECK(file >= 0);
    close(file);
    setenv("SOFTHCA_STATS", stats, 1);
    for (int i = 0; i < senders; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
        far[i] = pair[i][0];
    }
    for (int i = 0; i <= senders; i++) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0 && i < senders)
            sender(pair[i][1], i, writes, mtu);
        if (pid == 0)
            receiver(far, senders, mtu);
    }
    for (int i = 0; i <= senders; i++) {
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
    r.lost = lost(stats, writes);
    r.repeated =
        100.0 * (double)sum(stats, " repeated ", NULL) / (double)sum(stats, " sent ", NULL);
    printf("%d senders, MTU %d, %d MiB: %ld packets, %ld lost, %ld repeated (%.2f %%), %.2f s\n",
           senders, 128 << mtu, senders * writes * region >> 20, sum(stats, " sent ", NULL), r.lost,
           sum(stats, " repeated ", NULL), r.repeated, seconds() - started);
    unlink(stats);
    for (int i = 0; i < senders; i++) {
        close(pair[i][0]);
        close(pair[i][1]);
    }
    return r;
}

int main(void)
{
    setlinebuf(stdout);
    setenv("SOFTHCA_WIRE", "udp", 1);
    deadline(ALARM);
    /* Some may be repeated without need, where the receiver waits for a CPU. */
    for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
        CHECK_EQ(crowd(1, SANITIZED ? 64 : 1024, mtu).lost, 0);
        CHECK(crowd(most_senders, SANITIZED ? 16 : 64, mtu).repeated <= 5);
    }
    return 0;
}
