/* SPDX-License-Identifier: BSD-3-Clause */
/* trunkline_rails.h: rails and the objects on them, in SEQ and PAR. usage: raw RAILS [close]; exits
 * with 77 if there is no port. Each rank is connected with every other over each rail by RC and UC,
 * and sends datagrams. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trunkline_rails.h"

enum { slot_size = 64, grh_size = 40, depth = 4, patience_s = 30, types = 3 };
static const enum ibv_qp_type type_of[types] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

/* What the others must know of one rail of ours. */
struct card {
    trunkline_address_t address[types];
    uint64_t base;
    uint32_t key;
    uint32_t unused;
};

struct way {
    trunkline_domain_t domain;
    struct ibv_mr *memory;
    struct ibv_cq *cq;       /* of all UC queue pairs */
    struct ibv_cq *arrivals; /* of datagrams */
    trunkline_qp_t *qps[types];
    char *bytes; /* for each rank and type a slot as target, then as many as sources */
};

static const trunkline_rail_t *rails;
static unsigned count;
static struct way *ways;

#define GOOD(call) CHECK((call) == GASNET_OK, "%s", trunkline_rails_error())
#define REFUSED(call, code, words)                                                                 \
    CHECK((call) == (code) && strstr(trunkline_rails_error(), words), "%s", trunkline_rails_error())

static char *slot(const struct way *way, bool ours, gex_Rank_t rank, int type)
{
    return way->bytes + (((size_t)ours * job.size + rank) * types + (size_t)type) * slot_size;
}

static void open_rails(unsigned expected)
{
    const trunkline_rail_t *again;
    unsigned as_many;
    int code = trunkline_rails_open(&rails, &count);
    if (code != GASNET_OK && job.rank == 0)
        fprintf(stderr, "raw: %s\n", trunkline_rails_error());
    if (code == GASNET_ERR_RESOURCE && count == 0) {
        job_barrier();
        gasnet_exit(77);
    }
    CHECK(code == GASNET_OK && count == expected, "%u rails", count);
    GOOD(trunkline_rails_open(&again, &as_many));
    CHECK(again == rails && as_many == count);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s:%u", ibv_get_device_name(rails[i].context->device),
                 rails[i].port);
        CHECK(!strcmp(rails[i].name, name) && rails[i].index == i, "%s", rails[i].name);
        CHECK(rails[i].rate_mbps > 0 && rails[i].mtu >= 256 && rails[i].limits.max_qp > 0);
        CHECK(rails[i].lid || rails[i].gid[0] || rails[i].gid[15]);
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(rails[i].name, rails[j].name) != 0);
    }
}

/* ---- Making and connecting */

static void open_qp(struct way *way, const trunkline_rail_t *rail, int type, gex_Rank_t rank)
{
    trunkline_qp_t *qp = &way->qps[type][rank];
    char name[32];
    snprintf(name, sizeof(name), "to-%u", (unsigned)rank);
    trunkline_qp_options_t options = {.name = name,
                                      .type = type_of[type],
                                      .send_depth = depth,
                                      .recv_depth = job.size,
                                      .inline_size = 16,
                                      .reads = 1};
    if (options.type == IBV_QPT_UC)
        options.send_cq = way->cq;
    if (options.type == IBV_QPT_UD)
        options.recv_cq = way->arrivals;
    GOOD(trunkline_qp_open(qp, &way->domain, rail, &options));
    CHECK(qp->address.qpn == qp->qp->qp_num && qp->inline_size >= 16 && !strcmp(qp->name, name));
    CHECK(qp->owns_cq == (options.type != IBV_QPT_UC));
}

static void open_way(struct way *way, const trunkline_rail_t *rail, struct card *cards)
{
    size_t size = 2 * (size_t)job.size * types * slot_size;
    way->bytes = job_memory(size);
    memset(way->bytes, 0, size);
    GOOD(trunkline_domain_open(&way->domain, rail, rail->index % 2 == 0));
    CHECK((way->domain.context == rail->context) == (rail->index % 2 != 0));
    GOOD(trunkline_memory_open(&way->memory, &way->domain, way->bytes, size,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ));
    GOOD(trunkline_cq_open(&way->cq, &way->domain, 2 * depth * job.size, NULL));
    GOOD(trunkline_cq_open(&way->arrivals, &way->domain, job.size * job.size, NULL));
    for (int type = 0; type < types; type++) {
        way->qps[type] = job_memory(job.size * sizeof(trunkline_qp_t));
        for (gex_Rank_t rank = 0; rank < job.size; rank++) {
            open_qp(way, rail, type, rank);
            cards[rank].address[type] = way->qps[type][rank].address;
        }
    }
    for (gex_Rank_t rank = 0; rank < job.size; rank++) {
        cards[rank].base = (uintptr_t)way->bytes;
        cards[rank].key = way->memory->rkey;
        cards[rank].unused = 0;
    }
}

/* Posts buffers for datagrams. */
static void expect(struct way *way)
{
    for (gex_Rank_t from = 0; from < job.size; from++) {
        struct ibv_sge sge = {(uintptr_t)slot(way, false, from, 2), slot_size, way->memory->lkey};
        struct ibv_recv_wr wr = {.wr_id = from, .sg_list = &sge, .num_sge = 1}, *bad;
        CHECK(!ibv_post_recv(way->qps[2][0].qp, &wr, &bad));
    }
}

static const struct card *card_of(const struct card *all, unsigned rail, gex_Rank_t rank,
                                  gex_Rank_t to)
{
    return &all[((size_t)rank * count + rail) * job.size + to];
}

static void connect_all(const struct card *all)
{
    for (unsigned i = 0; i < count; i++)
        for (gex_Rank_t rank = 0; rank < job.size; rank++) {
            const struct card *theirs = card_of(all, i, rank, job.rank);
            for (int type = 0; type < types; type++)
                GOOD(trunkline_qp_connect(&ways[i].qps[type][rank], type_of[type] == IBV_QPT_UD
                                                                        ? NULL
                                                                        : &theirs->address[type]));
        }
}

/* ---- Use */

static uint64_t word(gex_Rank_t from, gex_Rank_t to, unsigned rail, int type)
{
    return job_mix(from * 1000 + to, rail * 10 + (unsigned)type + 1);
}

static struct ibv_wc next(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.wr_id = 0};
    time_t limit = time(NULL) + patience_s;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        CHECK(time(NULL) < limit, "no completion");
    CHECK(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
    return wc;
}

/* An inline write; on RC an unsignaled one before it. */
static void write_to(struct way *way, unsigned rail, int type, gex_Rank_t rank,
                     const struct card *theirs)
{
    uint64_t value = word(job.rank, rank, rail, type);
    size_t place = ((size_t)job.rank * types + (size_t)type) * slot_size;
    struct ibv_sge sge = {(uintptr_t)&value, sizeof(value), 0};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = theirs->base + place;
    wr.wr.rdma.rkey = theirs->key;
    wr.send_flags = IBV_SEND_INLINE;
    if (type_of[type] == IBV_QPT_RC)
        CHECK(!ibv_post_send(way->qps[type][rank].qp, &wr, &bad));
    wr.wr_id = 2;
    wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(way->qps[type][rank].qp, &wr, &bad));
    CHECK(next(way->qps[type][rank].send_cq).wr_id == 2);
}

static void read_from(struct way *way, unsigned rail, gex_Rank_t rank, const struct card *theirs)
{
    char *into = slot(way, true, rank, 0);
    struct ibv_sge sge = {(uintptr_t)into, sizeof(uint64_t), way->memory->lkey};
    struct ibv_send_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = theirs->base + (size_t)job.rank * types * slot_size;
    wr.wr.rdma.rkey = theirs->key;
    CHECK(!ibv_post_send(way->qps[0][rank].qp, &wr, &bad));
    CHECK(next(way->qps[0][rank].send_cq).wr_id == 3);
    CHECK(*(uint64_t *)into == word(job.rank, rank, rail, 0), "rank %u", (unsigned)rank);
}

static void send_to(struct way *way, unsigned rail, gex_Rank_t rank, const struct card *theirs)
{
    uint64_t value = word(job.rank, rank, rail, 2);
    trunkline_qp_t *qp = &way->qps[2][rank];
    struct ibv_sge sge = {(uintptr_t)&value, sizeof(value), 0};
    struct ibv_send_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1}, *bad;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    GOOD(trunkline_qp_reach(&wr.wr.ud.ah, qp, &theirs->address[2]));
    wr.wr.ud.remote_qpn = theirs->address[2].qpn;
    wr.wr.ud.remote_qkey = trunkline_qkey;
    CHECK(!ibv_post_send(qp->qp, &wr, &bad));
    CHECK(next(qp->send_cq).wr_id == 4);
    CHECK(!ibv_destroy_ah(wr.wr.ud.ah));
}

/* Receives one datagram of each rank, in any order. */
static void receive_all(struct way *way, unsigned rail)
{
    for (gex_Rank_t i = 0; i < job.size; i++) {
        struct ibv_wc wc = next(way->arrivals);
        uint64_t value = *(uint64_t *)(slot(way, false, (gex_Rank_t)wc.wr_id, 2) + grh_size);
        gex_Rank_t from = 0;
        while (from < job.size && value != word(from, job.rank, rail, 2))
            from++;
        CHECK(from < job.size && wc.byte_len == grh_size + sizeof(value));
        CHECK(!*slot(way, true, from, 2), "rank %u twice", (unsigned)from);
        *slot(way, true, from, 2) = 1;
    }
}

static void use(const struct card *all)
{
    for (unsigned i = 0; i < count; i++)
        for (gex_Rank_t rank = 0; rank < job.size; rank++) {
            const struct card *theirs = card_of(all, i, rank, job.rank);
            write_to(&ways[i], i, 0, rank, theirs);
            write_to(&ways[i], i, 1, rank, theirs);
            read_from(&ways[i], i, rank, theirs);
            /* All to the queue pair that has the buffers. */
            send_to(&ways[i], i, rank, card_of(all, i, rank, 0));
        }
    GOOD(trunkline_rails_barrier());
    for (unsigned i = 0; i < count; i++) {
        receive_all(&ways[i], i);
        for (gex_Rank_t rank = 0; rank < job.size; rank++)
            for (int type = 0; type < 2; type++)
                CHECK(*(uint64_t *)slot(&ways[i], false, rank, type) ==
                          word(rank, job.rank, i, type),
                      "rail %u rank %u", i, (unsigned)rank);
    }
}

/* ---- What can't be had */

static void refusals(void)
{
    const struct ibv_device_attr *limits = &rails[0].limits;
    trunkline_qp_options_t options = {.type = IBV_QPT_RC,
                                      .send_depth = (uint32_t)limits->max_qp_wr + 1};
    trunkline_qp_t qp;
    trunkline_domain_t *domain = &ways[0].domain;
    struct ibv_cq *cq;
    struct ibv_mr *memory;
    REFUSED(trunkline_qp_open(&qp, domain, rails, &options), GASNET_ERR_BAD_ARG,
            "work requests in a queue");
    CHECK(!qp.qp);
    options = (trunkline_qp_options_t){.type = IBV_QPT_RC, .reads = rails[0].reads_out + 1};
    REFUSED(trunkline_qp_open(&qp, domain, rails, &options), GASNET_ERR_BAD_ARG, "reads at once");
    options = (trunkline_qp_options_t){.type = IBV_QPT_RAW_PACKET};
    REFUSED(trunkline_qp_open(&qp, domain, rails, &options), GASNET_ERR_BAD_ARG, "only RC, UC");
    options = (trunkline_qp_options_t){.type = IBV_QPT_RC};
    for (unsigned i = 1; i < count; i++)
        if (rails[i].context != rails[0].context)
            REFUSED(trunkline_qp_open(&qp, domain, &rails[i], &options), GASNET_ERR_BAD_ARG,
                    "another device");
    REFUSED(trunkline_cq_open(&cq, domain, (uint32_t)limits->max_cqe + 1, NULL),
            GASNET_ERR_RESOURCE, "no completion queue");
    REFUSED(trunkline_memory_open(&memory, domain, NULL, 4096, IBV_ACCESS_LOCAL_WRITE),
            GASNET_ERR_RESOURCE, "can't register 4096 bytes");
    REFUSED(trunkline_qp_connect(&ways[0].qps[0][0], &ways[0].qps[1][0].address),
            GASNET_ERR_RESOURCE, "of another type");
    trunkline_address_t other = ways[0].qps[0][0].address;
    other.gid_type ^= IBV_GID_TYPE_ROCE_V2;
    REFUSED(trunkline_qp_connect(&ways[0].qps[0][0], &other), GASNET_ERR_RESOURCE,
            "its GID is of another type");
}

/* Ranks that give different sizes get an error, and the next exchange works. */
static void share_unequal(void)
{
    uint64_t mine[2] = {job.rank, job.rank}, *all = job_memory(job.size * sizeof(mine));
    size_t size = job.rank == 1 ? sizeof(mine) : sizeof(*mine);
    if (job.size > 1)
        REFUSED(trunkline_rails_share(mine, all, size), GASNET_ERR_RESOURCE,
                "all must give the same size");
    GOOD(trunkline_rails_share(mine, all, sizeof(mine)));
    for (gex_Rank_t rank = 0; rank < job.size; rank++)
        CHECK(all[2 * rank] == rank && all[2 * rank + 1] == rank);
    free(all);
}

static void close_all(void)
{
    for (unsigned i = 0; i < count; i++) {
        for (int type = 0; type < types; type++) {
            for (gex_Rank_t rank = 0; rank < job.size; rank++)
                trunkline_qp_close(&ways[i].qps[type][rank]);
            free(ways[i].qps[type]);
        }
        CHECK(!ibv_destroy_cq(ways[i].cq) && !ibv_destroy_cq(ways[i].arrivals));
        CHECK(!ibv_dereg_mr(ways[i].memory));
        trunkline_domain_close(&ways[i].domain);
        trunkline_domain_close(&ways[i].domain);
        free(ways[i].bytes);
    }
    trunkline_rails_close();
}

static void round_of_all(void)
{
    size_t size = (size_t)count * job.size * sizeof(struct card);
    struct card *mine = job_memory(size), *all = job_memory(size * job.size);
    ways = job_memory(count * sizeof(*ways));
    memset(ways, 0, count * sizeof(*ways));
    for (unsigned i = 0; i < count; i++)
        open_way(&ways[i], &rails[i], mine + (size_t)i * job.size);
    GOOD(trunkline_rails_share(mine, all, size));
    connect_all(all);
    for (unsigned i = 0; i < count; i++)
        expect(&ways[i]);
    GOOD(trunkline_rails_barrier());
    use(all);
    refusals();
    share_unequal();
    job_barrier();
    close_all();
    free(ways);
    free(mine);
    free(all);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, GASNET_PAGESIZE);
    unsigned expected = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    for (int round = 0; round < 2; round++) {
        job_phase("round %d", round);
        open_rails(expected);
        round_of_all();
    }
    job_end();
}
