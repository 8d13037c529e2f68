/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca's wire of packets beside plain UDP that moves the same number of packets of the same
 * sizes, in turns, in one run; medians. Two processes, each on a CPU of its own if there are two:
 * the parent measures, the child is its peer. One thread each polls; no locks. */
#include "config.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>

#include "../softhca/harness.h"
#include "packet/crc.h"
#include "pin.h"

enum {
    reps = 15,
    reps_max = 101,
    pings = 2000,
    writes = 32, /* of 1 MiB, of which two are under way */
    mtu = 4096,
    small_packet = 12 + 16 + 8 + 4, /* BTH, RETH, payload, ICRC */
    large_packet = 12 + mtu + 4,    /* of the middle of a message */
    packets_of_write = BUF_BYTES / mtu,
    burst = 15, /* packets that fit in the longest datagram */
    flying = 4, /* bursts */
    batch = 32, /* datagrams of one call */
};

/* Shared by the plain sides; one cache line each, because two CPUs spin on them. */
struct plain {
    _Alignas(64) _Atomic long received; /* bytes */
    _Alignas(64) struct sockaddr_in at[2];
};

static struct plain *plain;
static struct end end;
static struct address other;
static int link_fd, udp_fd;
static bool left;
static volatile uint64_t *own_word; /* that the peer writes */
static const char *only = "";       /* only comparisons whose name contains it */

/* ---- through softhca ---- */

static void poll_once(struct ibv_cq *cq, int *under_way)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(cq, 1, &wc);

    if (n > 0)
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK(n >= 0);
    *under_way -= n;
}

/* Each waits for the other's write while it polls for the completion of its own. */
static double roce_ping(void)
{
    uint64_t *out = (uint64_t *)(void *)(end.buf + 64);
    int under_way = 0;
    double start;

    *own_word = 0;
    meet(link_fd);
    start = seconds();
    for (uint64_t i = 1; i <= pings; i++) {
        while (!left && *own_word != i)
            poll_once(end.scq, &under_way);
        *out = i;
        CHECK_EQ(post(&end, IBV_WR_RDMA_WRITE, 1, 64, 8, IBV_SEND_SIGNALED, &other, 0), 0);
        under_way++;
        while (left && *own_word != i)
            poll_once(end.scq, &under_way);
    }
    start = seconds() - start;
    while (under_way > 0)
        poll_once(end.scq, &under_way);
    meet(link_fd);
    return start / pings;
}

/* The last one notifies the receiver, which polls for that. */
static double roce_stream(void)
{
    int under_way = 0;
    double start;

    if (!left)
        CHECK_EQ(post_recv(&end, 1, 0, 0), 0);
    meet(link_fd);
    start = seconds();
    for (int i = 1; left && i <= writes; i++) {
        CHECK_EQ(post(&end, i == writes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, 1, 0,
                      BUF_BYTES, IBV_SEND_SIGNALED, &other, 0),
                 0);
        for (under_way++; under_way > (i == writes ? 0 : 1);)
            poll_once(end.scq, &under_way);
    }
    for (under_way = !left; under_way > 0;)
        poll_once(end.rcq, &under_way);
    start = seconds() - start;
    meet(link_fd);
    return start / writes / packets_of_write;
}

/* ---- plain UDP ---- */

static void plain_send(void *bytes, size_t n)
{
    CHECK_EQ(
        sendto(udp_fd, bytes, n, 0, (struct sockaddr *)&plain->at[left], sizeof plain->at[left]),
        n);
}

static void plain_receive(void *bytes, size_t n)
{
    ssize_t got;

    while ((got = recv(udp_fd, bytes, n, MSG_DONTWAIT)) < 0)
        CHECK(errno == EAGAIN);
    CHECK_EQ(got, n);
}

static double plain_ping(void)
{
    char bytes[small_packet] = {0};
    double start;

    meet(link_fd);
    start = seconds();
    for (int i = 1; i <= pings; i++) {
        if (!left)
            plain_receive(bytes, sizeof bytes);
        plain_send(bytes, sizeof bytes);
        if (left)
            plain_receive(bytes, sizeof bytes);
    }
    return (seconds() - start) / pings;
}

/* Bytes in the buffer, which is traversed as a write traverses its own. */
static size_t piece(size_t *at, size_t n)
{
    size_t here = *at;

    if (here + n > BUF_BYTES)
        here = 0;
    *at = here + n;
    return here;
}

static void prepare_messages(struct mmsghdr *m, struct iovec *iov, void *to)
{
    for (int i = 0; i < batch; i++)
        m[i].msg_hdr = (struct msghdr){.msg_name = to,
                                       .msg_namelen = to ? sizeof(struct sockaddr_in) : 0,
                                       .msg_iov = &iov[i],
                                       .msg_iovlen = 1};
}

/* The receiver counts in shared memory what has arrived, so that its socket never overflows. */
static void plain_out(long bytes)
{
    struct iovec iov[batch];
    struct mmsghdr m[batch];
    size_t at = 0;

    prepare_messages(m, iov, &plain->at[left]);
    for (long sent = 0; sent < bytes;) {
        long part = (long)burst * large_packet;
        int n, ready = 0;

        while (ready < flying / 2 && sent + ready * part < bytes) {
            iov[ready] = (struct iovec){end.buf + piece(&at, (size_t)part), (size_t)part};
            ready++;
        }
        while (sent + ready * part - plain->received > flying * part)
            continue;
        n = sendmmsg(udp_fd, m, (unsigned)ready, 0);
        CHECK_EQ(n, ready);
        sent += n * part;
    }
    while (plain->received < bytes)
        continue;
}

static void plain_in(long bytes, size_t each)
{
    struct iovec iov[batch];
    struct mmsghdr m[batch];

    prepare_messages(m, iov, NULL);
    for (size_t at = 0; plain->received < bytes;) {
        long got = 0;
        int n;

        for (int i = 0; i < batch; i++)
            iov[i] = (struct iovec){end.buf + piece(&at, each), each};
        n = recvmmsg(udp_fd, m, batch, MSG_DONTWAIT, NULL);
        CHECK(n >= 0 || errno == EAGAIN);
        for (int i = 0; i < n; i++)
            got += m[i].msg_len;
        plain->received += got;
    }
}

/* Datagrams are cut by the kernel, and joined again for the receiver if `joined`. */
static double plain_flow(bool joined)
{
    long bursts = (long)writes * packets_of_write / burst, bytes = bursts * burst * large_packet;
    int size = large_packet;
    double start;

    if (left || joined)
        CHECK_EQ(setsockopt(udp_fd, SOL_UDP, left ? UDP_SEGMENT : UDP_GRO, &size, sizeof size), 0);
    plain->received = 0;
    meet(link_fd);
    start = seconds();
    if (left)
        plain_out(bytes);
    else
        plain_in(bytes, joined ? (size_t)burst * large_packet : large_packet);
    start = seconds() - start;
    size = 0;
    CHECK_EQ(setsockopt(udp_fd, SOL_UDP, left ? UDP_SEGMENT : UDP_GRO, &size, sizeof size), 0);
    meet(link_fd);
    return start / (double)(bursts * burst);
}

static double plain_cut(void)
{
    return plain_flow(false);
}

static double plain_joined(void)
{
    return plain_flow(true);
}

static void open_plain(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int room = 4 << 20;

    udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(udp_fd >= 0);
    CHECK_EQ(bind(udp_fd, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(getsockname(udp_fd, (struct sockaddr *)&at, &length), 0);
    setsockopt(udp_fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    plain->at[!left] = at;
}

/* ---- what is compared ---- */

struct comparison {
    const char *name;
    double (*ours)(void), (*other)(void); /* seconds for one */
    int packets;                          /* of ours that carry data, in one */
    bool rate;                            /* the ratio compares rates; the aim is a lower bound */
    double aim, aim_by_tables;
};

static const struct comparison comparisons[] = {
    {"write 8 B, round trip / UDP ping-pong", roce_ping, plain_ping, 2, false, 1.5, 1.5},
    {"write 1 MiB / UDP, segmentation", roce_stream, plain_cut, 1, true, 0.7, 0.35},
    {"write 1 MiB / UDP, and receive offload", roce_stream, plain_joined, 1, true, 0.7, 0.35},
};
#define COMPARISONS (sizeof comparisons / sizeof comparisons[0])

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, order);
    return v[n / 2];
}

static void print(const struct comparison *c, const double *ours, const double *plainly, int n)
{
    double mine[reps_max], theirs[reps_max], ratio[reps_max], value;
    const char *crc = getenv("SOFTHCA_CRC");
    bool tables = !roce_crc_clmul() || (crc && strcmp(crc, "tables") == 0);
    double aim = tables ? c->aim_by_tables : c->aim;

    for (int i = 0; i < n; i++) {
        mine[i] = ours[i];
        theirs[i] = plainly[i];
        ratio[i] = c->rate ? plainly[i] / ours[i] : ours[i] / plainly[i];
    }
    value = middle(ratio, n);
    printf("%-38s %10.0f %12.0f  %6.2f (%.2f-%.2f)  %s %4.2f: %s\n", c->name,
           c->packets / middle(mine, n), c->packets / middle(theirs, n), value, ratio[n / 4],
           ratio[n - 1 - n / 4], c->rate ? ">=" : "<=", aim,
           (c->rate ? value >= aim : value <= aim) ? "met" : "missed");
}

static void measure(const struct comparison *c)
{
    double ours[reps], plainly[reps];

    c->ours(); /* the first writes measure round trips and open windows */
    for (int i = 0; i < reps; i++) {
        ours[i] = c->ours();
        plainly[i] = c->other();
    }
    if (left)
        print(c, ours, plainly, reps);
}

static void connect_large(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_4096,
                            .dest_qp_num = other.qpn,
                            .rq_psn = other.psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .ah_attr = path_to(&other)};

    to_init(end.qp);
    CHECK_EQ(ibv_modify_qp(end.qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             0);
    to_rts(&end, 14, 7);
}

static void both(int fd, pid_t peer)
{
    (void)peer;
    link_fd = fd;
    bench_pin_to(left);
    deadline(120);
    open_plain();
    end_open(&end, NULL);
    other = swap_addresses(fd, &end);
    connect_large();
    own_word = (volatile uint64_t *)(volatile void *)end.buf;
    if (left)
        printf("%-38s %10s %12s  %6s\n", "packets/s; medians of ratios (quartiles)", "softhca",
               "plain UDP", "ratio");
    for (size_t i = 0; i < COMPARISONS; i++)
        if (strstr(comparisons[i].name, only))
            measure(&comparisons[i]);
    end_close(&end);
}

static void measuring(int fd, pid_t peer)
{
    left = true;
    both(fd, peer);
}

int main(int argc, char **argv)
{
    char fabric[64];

    snprintf(fabric, sizeof fabric, "bench-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    setenv("SOFTHCA_WIRE", "udp", 1);
    if (argc > 1)
        only = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    plain = mmap(NULL, sizeof *plain, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(plain != MAP_FAILED);
    in_two(measuring, both);
    return 0;
}
