/* SPDX-License-Identifier: BSD-3-Clause */
/* The baseline of the conduit: the same transfers by the simplest correct loops over verbs. / */
#include "config.h"

#include <string.h>

#include "raw_private.h"

enum {
    ack_each = 16,
    flood_max = 48 /* unacknowledged: always below the receives that are posted */
};

static int sends_out;

static void check(const struct ibv_wc *wc, int n)
{
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            bench_die("%s: raw completion: %s", raw.name, ibv_wc_status_str(wc[i].status));
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void post_from(size_t at, enum ibv_wr_opcode opcode, size_t nbytes)
{
    struct ibv_sge sge = {(uintptr_t)bench_job.mine + at, (uint32_t)nbytes, raw.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    if (opcode != IBV_WR_RDMA_READ && !is_atomic(opcode) && nbytes <= raw.inline_limit)
        wr.send_flags = IBV_SEND_INLINE;
    wr.wr.rdma.remote_addr = raw.theirs.base + BENCH_TARGET;
    wr.wr.rdma.rkey = raw.theirs.rkey;
    if (is_atomic(opcode)) {
        wr.wr.atomic.remote_addr = raw.theirs.base + BENCH_TARGET;
        wr.wr.atomic.rkey = raw.theirs.rkey;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.swap = 1;
    }
    int error = ibv_post_send(raw.qp, &wr, &bad);
    if (error)
        bench_die("%s: ibv_post_send: %s", raw.name, strerror(error));
    sends_out++;
}

static void post(enum ibv_wr_opcode opcode, size_t nbytes)
{
    post_from(BENCH_SOURCE, opcode, nbytes);
}

/* Until at most `most` work requests are under way. */
static void drain(int most)
{
    struct ibv_wc wc[bench_window];
    while (sends_out > most) {
        int n = ibv_poll_cq(raw.send_cq, bench_window, wc);
        check(wc, n);
        sends_out -= n;
    }
}

static uint64_t last_slot; /* of the last arrival */

/* Takes arrivals and posts their buffers again; returns how many. */
static int arrivals(void)
{
    struct ibv_wc wc[bench_window];
    int n = ibv_poll_cq(raw.recv_cq, bench_window, wc);
    check(wc, n);
    for (int i = 0; i < n; i++)
        raw_post_recv(last_slot = wc[i].wr_id);
    return n;
}

static void await_arrival(void)
{
    while (!arrivals())
        ;
}

/* A send's answer carries the bytes that came, like the handler's of a Medium, so both sides read
 * what the other process wrote. The answer leaves from the slot, which is posted again behind all
 * others: it is written after this answer has arrived. */
static void ping_pong(enum ibv_wr_opcode opcode, size_t nbytes, long count)
{
    for (long i = 0; i < count; i++) {
        if (bench_job.me == 1)
            await_arrival();
        drain(raw_depth / 2);
        if (bench_job.me == 1 && opcode == IBV_WR_SEND)
            post_from(BENCH_RING + last_slot * BENCH_SLOT_SIZE, opcode, nbytes);
        else
            post(opcode, nbytes);
        if (bench_job.me == 0)
            await_arrival();
    }
    drain(0);
}

void bench_raw_send(size_t nbytes, long count)
{
    ping_pong(IBV_WR_SEND, nbytes, count);
}

void bench_raw_write_imm(size_t nbytes, long count)
{
    ping_pong(IBV_WR_RDMA_WRITE_WITH_IMM, nbytes, count);
}

static long acks(long count)
{
    return (count + ack_each - 1) / ack_each;
}

static void flood_receive(long count)
{
    long seen = 0, told = 0;
    while (seen < count) {
        seen += arrivals();
        for (long due = seen == count ? acks(count) : seen / ack_each; told < due; told++) {
            drain(raw_depth / 2);
            post(IBV_WR_SEND, 0);
        }
    }
    drain(0);
}

static void flood(size_t written, size_t sent, long count)
{
    long back = 0;
    if (bench_job.me == 1) {
        flood_receive(count);
        return;
    }
    for (long i = 0; i < count; i++) {
        while (i - back * ack_each >= flood_max)
            back += arrivals();
        drain(raw_depth - 2);
        if (written > 0)
            post(IBV_WR_RDMA_WRITE, written);
        post(IBV_WR_SEND, sent);
    }
    while (back < acks(count))
        back += arrivals();
    drain(0);
}

void bench_raw_flood(size_t nbytes, long count)
{
    flood(0, nbytes, count);
}

/* The receiver of a write learns of it by a message behind it, of the size of a Long's head. */
void bench_raw_write_send(size_t nbytes, long count)
{
    enum { head = 24 };
    flood(nbytes, head, count);
}

static void one_sided(enum ibv_wr_opcode opcode, size_t nbytes, long count, int window)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        drain(window - 1);
        post(opcode, nbytes);
    }
    drain(0);
}

void bench_raw_write(size_t nbytes, long count)
{
    one_sided(IBV_WR_RDMA_WRITE, nbytes, count, 1);
}

void bench_raw_read(size_t nbytes, long count)
{
    one_sided(IBV_WR_RDMA_READ, nbytes, count, 1);
}

void bench_raw_write_window(size_t nbytes, long count)
{
    one_sided(IBV_WR_RDMA_WRITE, nbytes, count, bench_window);
}

void bench_raw_read_window(size_t nbytes, long count)
{
    one_sided(IBV_WR_RDMA_READ, nbytes, count, bench_window);
}

void bench_raw_fetch_add(size_t nbytes, long count)
{
    one_sided(IBV_WR_ATOMIC_FETCH_AND_ADD, nbytes, count, 1);
}

void bench_raw_compare_swap(size_t nbytes, long count)
{
    one_sided(IBV_WR_ATOMIC_CMP_AND_SWP, nbytes, count, 1);
}

void bench_raw_fetch_add_window(size_t nbytes, long count)
{
    one_sided(IBV_WR_ATOMIC_FETCH_AND_ADD, nbytes, count, bench_window);
}
