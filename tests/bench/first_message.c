/* SPDX-License-Identifier: BSD-3-Clause */
/* The first message to a peer, which has to connect first, beside a round trip of bare datagrams
 * over the same port: a job of two ranks, and one sample. Rank 0 prints "first US later US datagram
 * US", the later message and the datagram being medians. Run by scale, several times. The same with
 * first_parts.c is first_parts, which also prints where the time goes. One client thread. */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gasnetex.h>
#include <trunkline_rails.h>

#include "first_parts.h"

enum { rounds = 1001, grh_size = 40 /* in front of a datagram */, buffer_size = 128 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(bool truth, const char *what)
{
    if (truth)
        return;
    const char *error = trunkline_rails_error();
    fprintf(stderr, "first_message: %s%s%s\n", what, *error ? ": " : "", error);
    gasnet_exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double samples[rounds])
{
    qsort(samples, rounds, sizeof(*samples), by_size);
    return samples[rounds / 2];
}

/* ---- datagrams ---- */

static struct {
    trunkline_domain_t domain;
    trunkline_qp_t qp;
    struct ibv_mr *memory;
    struct ibv_ah *to;
    uint32_t to_qp;
    char buffers[2][buffer_size];
} raw;

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)raw.buffers[0], buffer_size, raw.memory->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    must(ibv_post_recv(raw.qp.qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void send_datagram(void)
{
    struct ibv_sge sge = {(uintptr_t)raw.buffers[1], 8, raw.memory->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.ud.ah = raw.to;
    wr.wr.ud.remote_qpn = raw.to_qp;
    wr.wr.ud.remote_qkey = trunkline_qkey;
    must(ibv_post_send(raw.qp.qp, &wr, &bad) == 0, "ibv_post_send");
}

static void await(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int got;
    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
        continue;
    must(got == 1 && wc.status == IBV_WC_SUCCESS, "a datagram");
}

static void raw_open(gex_Rank_t other)
{
    const trunkline_rail_t *rails;
    trunkline_address_t all[2];
    unsigned count;
    const trunkline_qp_options_t options = {
        .name = "datagrams", .type = IBV_QPT_UD, .send_depth = 4, .recv_depth = 4};
    must(trunkline_rails_open(&rails, &count) == GASNET_OK, "rails");
    must(trunkline_domain_open(&raw.domain, &rails[0], 0) == GASNET_OK, "domain");
    must(trunkline_memory_open(&raw.memory, &raw.domain, raw.buffers, sizeof(raw.buffers),
                               IBV_ACCESS_LOCAL_WRITE) == GASNET_OK,
         "memory");
    struct ibv_cq *cqs[2];
    for (int i = 0; i < 2; i++)
        must(trunkline_cq_open(&cqs[i], &raw.domain, 16, NULL) == GASNET_OK, "completion queue");
    trunkline_qp_options_t with = options;
    with.send_cq = cqs[0];
    with.recv_cq = cqs[1];
    must(trunkline_qp_open(&raw.qp, &raw.domain, &rails[0], &with) == GASNET_OK, "queue pair");
    must(trunkline_qp_connect(&raw.qp, NULL) == GASNET_OK, "queue pair");
    post_receive();
    must(trunkline_rails_share(&raw.qp.address, all, sizeof(all[0])) == GASNET_OK, "addresses");
    must(trunkline_qp_reach(&raw.to, &raw.qp, &all[other]) == GASNET_OK, "address");
    raw.to_qp = all[other].qpn;
}

static double datagrams(bool is_first)
{
    static double samples[rounds];
    for (int i = 0; i < rounds; i++) {
        double began = now_us();
        if (is_first)
            send_datagram();
        await(raw.qp.recv_cq);
        post_receive();
        if (!is_first)
            send_datagram();
        await(raw.qp.send_cq);
        samples[i] = now_us() - began;
    }
    return median(samples);
}

/* ---- messages ---- */

enum { request_index = 200, reply_index };
static int replies;
static bool is_over;

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies++;
}

static void on_request(gex_Token_t token, gex_AM_Arg_t is_last)
{
    is_over = is_last;
    gex_AM_ReplyShort0(token, reply_index, 0);
    if (first_parts_end)
        first_parts_end();
}

static double message(gex_TM_t tm, int is_last)
{
    double began = now_us();
    int expected = replies + 1;
    gex_AM_RequestShort1(tm, 1, request_index, 0, is_last);
    GASNET_BLOCKUNTIL(replies == expected);
    return now_us() - began;
}

static void ask(gex_TM_t tm, double datagram)
{
    static double later[rounds];
    if (first_parts_begin)
        first_parts_begin();
    double first = message(tm, 0);
    if (first_parts_end)
        first_parts_end();
    for (int i = 0; i < rounds; i++)
        later[i] = message(tm, i == rounds - 1);
    printf("first %.1f later %.2f datagram %.2f\n", first, median(later), datagram);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t entries[] = {
        {request_index, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL,
         NULL},
        {reply_index, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    if (gex_Client_Init(&client, &ep, &tm, "first", &argc, &argv, 0))
        return 1;
    gex_Rank_t me = gex_TM_QueryRank(tm);
    must(gex_TM_QuerySize(tm) == 2, "a job of two ranks is needed");
    must(gex_EP_RegisterHandlers(ep, entries, 2) == GASNET_OK, "handlers");
    raw_open(1 - me);
    must(trunkline_rails_barrier() == GASNET_OK, "barrier");
    /* Its last answer shows that rank 1 is about to poll. A fence of the launcher would not: it
     * lets one rank go long before the other. */
    double datagram = datagrams(me == 0);
    if (first_parts_begin && me != 0)
        first_parts_begin();
    if (me == 0)
        ask(tm, datagram);
    else
        GASNET_BLOCKUNTIL(is_over);
    if (first_parts_print)
        must(first_parts_print(me), "a message is missing between the parts");
    gasnet_exit(0);
}
