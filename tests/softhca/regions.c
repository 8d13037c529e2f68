/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions beyond ibv_reg_mr: changing one (ibv_rereg_mr), advice, device memory; and how much
 * memory a queue pair costs. Owns nothing beyond each case. */
#include "config.h"

#include <malloc.h>

#include "harness.h"

static enum ibv_wc_status write_to(struct end *a, uint32_t rkey, uint64_t addr, size_t length)
{
    struct address to = {.rkey = rkey, .addr = addr};

    CHECK_EQ(post(a, IBV_WR_RDMA_WRITE, 1, 0, length, IBV_SEND_SIGNALED, &to, 0), 0);
    return wait_wc(a->scq).status;
}

/* After an error, both ends from the start again. */
static void reconnect(struct end *a, struct end *b)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct address to_a = address_of(a), to_b = address_of(b);

    CHECK_EQ(ibv_modify_qp(a->qp, &reset, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(b->qp, &reset, IBV_QP_STATE), 0);
    connect_to(a, &to_b);
    connect_to(b, &to_a);
}

static void translation(void)
{
    struct end a, b;
    struct ibv_mr *mr;
    uint32_t old;

    open_two(&a, &b, NULL);
    fill(a.buf, 4096, 1);
    mr = b.mr;
    old = mr->rkey;
    /* The peer remembers where the region was. */
    CHECK_EQ(write_to(&a, old, (uintptr_t)b.buf, 100), IBV_WC_SUCCESS);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 65536, 4096, 0), 0);
    CHECK(mr->addr == b.buf + 65536 && mr->length == 4096 && mr->pd == b.pd);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf + 65536, 4096), IBV_WC_SUCCESS);
    CHECK(filled(b.buf + 65536, 4096, 1));
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&a, &b);
    CHECK_EQ(write_to(&a, old, (uintptr_t)b.buf + 65536, 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&a, &b);
    /* To memory that is not shared, and back. */
    char *own = calloc(1, 8192);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, own, 8192, 0), 0);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)own, 4096), IBV_WC_SUCCESS);
    CHECK(filled(own, 4096, 1));
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf, BUF_BYTES, 0), 0);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 4096), IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 4096, 1));
    free(own);
    close_two(&a, &b);
}

static void access_and_domain(void)
{
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct end a, b;
    struct ibv_pd *other;
    struct ibv_mr *mr;

    open_two(&a, &b, NULL);
    mr = b.mr;
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ),
             0);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&a, &b);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all), 0);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 8), IBV_WC_SUCCESS);
    CHECK((other = ibv_alloc_pd(b.ctx)) != NULL);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    CHECK(mr->pd == other);
    CHECK_EQ(ibv_dealloc_pd(other), EBUSY);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 8), IBV_WC_REM_ACCESS_ERR);
    reconnect(&a, &b);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0), 0);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 8), IBV_WC_SUCCESS);
    CHECK_EQ(ibv_dealloc_pd(other), 0);
    close_two(&a, &b);
}

/* Refused calls change nothing. */
static void refused_change(void)
{
    const int t = IBV_REREG_MR_CHANGE_TRANSLATION, acc = IBV_REREG_MR_CHANGE_ACCESS;
    struct end a, b;
    struct ibv_mr *mr;

    open_two(&a, &b, NULL);
    mr = b.mr;
    CHECK_EQ(ibv_rereg_mr(mr, 0, NULL, b.buf, 100, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, 8, NULL, b.buf, 100, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, t, NULL, b.buf, 0, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, t, NULL, NULL, 100, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, acc, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, acc, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, a.pd, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    CHECK_EQ(write_to(&a, mr->rkey, (uintptr_t)b.buf, 4096), IBV_WC_SUCCESS);
    close_two(&a, &b);
}

static void advice(void)
{
    struct end e;
    struct ibv_sge sge;

    end_open(&e, NULL);
    sge = sge_of(&e, 0, 4096);
    CHECK_EQ(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
    CHECK_EQ(
        ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
        0);
    CHECK_EQ(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 8, &sge, 1), EOPNOTSUPP);
    sge.length = BUF_BYTES + 1;
    CHECK_EQ(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EFAULT);
    end_close(&e);
}

/* ---- paged on demand ---- */

static void paging_offered(const char *setting, bool any, uint32_t rc_has, uint32_t rc_lacks)
{
    struct ibv_device_attr_ex attr;
    struct end e;
    int wanted = any ? 0 : EOPNOTSUPP;
    struct ibv_mr *mr;

    if (setting)
        setenv("SOFTHCA_ODP", setting, 1);
    end_open(&e, NULL);
    CHECK_EQ(ibv_query_device_ex(e.ctx, NULL, &attr), 0);
    CHECK_EQ(attr.odp_caps.general_caps, any ? IBV_ODP_SUPPORT : 0);
    CHECK_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps & (rc_has | rc_lacks), rc_has);
    CHECK_EQ(attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_SEND,
             any ? IBV_ODP_SUPPORT_SEND : 0);
    errno = 0;
    mr = ibv_reg_mr(e.pd, e.buf, 4096, IBV_ACCESS_ON_DEMAND);
    CHECK(any ? mr != NULL : mr == NULL && errno == wanted);
    CHECK(!ibv_reg_mr(e.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
    if (mr)
        ibv_dereg_mr(mr);
    end_close(&e);
}

static void paging_is_not_offered(void)
{
    paging_offered(NULL, false, 0, IBV_ODP_SUPPORT_WRITE);
}

static void paging_of_all(void)
{
    paging_offered("1", true, IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC, 0);
}

static void paging_without_atomics(void)
{
    paging_offered("2", true, IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE, IBV_ODP_SUPPORT_ATOMIC);
}

static void paging_of_datagrams(void)
{
    paging_offered("3", true, 0, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_READ);
}

/* A transfer out of another region than the end's own. */
static enum ibv_wc_status transfer(struct end *a, struct end *b, enum ibv_wr_opcode op,
                                   struct ibv_mr *mr, char *at)
{
    struct ibv_sge sge = {(uintptr_t)at, 4096, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    enum ibv_wc_status status;

    wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
    wr.wr.rdma.rkey = b->mr->rkey;
    CHECK_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
    status = wait_wc(a->scq).status;
    if (status != IBV_WC_SUCCESS)
        reconnect(a, b);
    return status;
}

static char *map_at(char *where, int rights)
{
    char *p =
        mmap(where, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

/* Behaviour of real drivers that surprises programs. */
static void pages_on_demand(void)
{
    const int local = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;
    struct ibv_mr *writing, *reading;
    struct end a, b;
    char *p;

    setenv("SOFTHCA_ODP", "1", 1);
    setenv("SOFTHCA_PIN", "1", 1);
    open_two(&a, &b, NULL);
    p = map_at(NULL, PROT_READ | PROT_WRITE);
    /* Neither needs memory yet, and none is pinned. */
    munmap(p, 4096);
    CHECK((writing = ibv_reg_mr(a.pd, p, 4096, local)) != NULL);
    CHECK((reading = ibv_reg_mr(a.pd, p, 4096, IBV_ACCESS_ON_DEMAND)) != NULL);
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_WRITE, reading, p), IBV_WC_LOC_PROT_ERR);
    map_at(p, PROT_READ | PROT_WRITE);
    fill(p, 4096, 3);
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_WRITE, writing, p), IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 4096, 3));
    /* Other pages at the same address are the region's. */
    map_at(p, PROT_READ | PROT_WRITE);
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_READ, writing, p), IBV_WC_SUCCESS);
    CHECK(filled(p, 4096, 3));
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_READ, reading, p), IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(mprotect(p, 4096, PROT_READ), 0);
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_WRITE, reading, p), IBV_WC_SUCCESS);
    CHECK_EQ(transfer(&a, &b, IBV_WR_RDMA_WRITE, writing, p), IBV_WC_LOC_PROT_ERR);
    ibv_dereg_mr(reading);
    ibv_dereg_mr(writing);
    close_two(&a, &b);
}

#define DM_ACCESS                                                                                  \
    (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
     IBV_ACCESS_REMOTE_READ)

static void device_memory(void)
{
    struct ibv_alloc_dm_attr attr = {.length = 8192}, bad = {.length = 64, .log_align_req = 20};
    struct ibv_device_attr_ex limits;
    struct ibv_recv_wr recv = {.num_sge = 1}, *bad_recv;
    struct end a, b;
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    struct ibv_sge sge;
    char local[4096];

    open_two(&a, &b, NULL);
    CHECK_EQ(ibv_query_device_ex(b.ctx, NULL, &limits), 0);
    CHECK(!ibv_alloc_dm(b.ctx, &bad) && errno == EINVAL);
    bad.log_align_req = 6;
    bad.length = limits.max_dm_size + 1;
    CHECK(!ibv_alloc_dm(b.ctx, &bad) && errno == ENOMEM);
    CHECK((dm = ibv_alloc_dm(b.ctx, &attr)) != NULL);
    bad.length = limits.max_dm_size; /* no longer free */
    CHECK(!ibv_alloc_dm(b.ctx, &bad) && errno == ENOMEM);
    CHECK(!ibv_reg_dm_mr(b.pd, dm, 0, 8192, IBV_ACCESS_LOCAL_WRITE) && errno == EINVAL);
    CHECK(!ibv_reg_dm_mr(b.pd, dm, 4096, 4097, DM_ACCESS) && errno == EINVAL);
    CHECK((mr = ibv_reg_dm_mr(b.pd, dm, 4096, 4096, DM_ACCESS)) != NULL);
    CHECK_EQ(ibv_free_dm(dm), EBUSY);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf, 64, 0),
             IBV_REREG_MR_ERR_INPUT);
    /* Remote addresses count from the start of the region. */
    fill(a.buf, 4096, 9);
    CHECK_EQ(write_to(&a, mr->rkey, 0, 1000), IBV_WC_SUCCESS);
    CHECK_EQ(ibv_memcpy_from_dm(local, dm, 4096, 1000), 0);
    CHECK(filled(local, 1000, 9));
    CHECK_EQ(ibv_memcpy_from_dm(local, dm, 8000, 196), EFAULT);
    CHECK_EQ(ibv_memcpy_from_dm(local, dm, 2, 4), EFAULT);
    CHECK_EQ(ibv_memcpy_to_dm(dm, 4, local, 3), EFAULT);
    CHECK_EQ(ibv_memcpy_to_dm(dm, 8196, local, 0), EFAULT);
    /* Local ones too: receive into it, send from it. */
    sge = (struct ibv_sge){2000, 500, mr->lkey};
    recv.sg_list = &sge;
    CHECK_EQ(ibv_post_recv(b.qp, &recv, &bad_recv), 0);
    CHECK_EQ(post_send(&a, 1, 0, 500, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(ibv_memcpy_from_dm(local, dm, 4096 + 2000, 500), 0);
    CHECK(filled(local, 500, 9));
    fill(local, 100, 4);
    CHECK_EQ(ibv_memcpy_to_dm(dm, 4096 + 3000, local, 100), 0);
    CHECK_EQ(post_recv(&a, 1, 8192, 100), 0);
    struct ibv_sge from = {3000, 100, mr->lkey};
    struct ibv_send_wr *bad_send, wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
    CHECK_EQ(ibv_post_send(b.qp, &wr, &bad_send), 0);
    CHECK_EQ(wait_wc(a.rcq).status, IBV_WC_SUCCESS);
    CHECK(filled(a.buf + 8192, 100, 4));
    CHECK_EQ(write_to(&a, mr->rkey, 4000, 97), IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    CHECK_EQ(ibv_free_dm(dm), 0);
    close_two(&a, &b);
}

/* ---- the price of a queue pair ---- */

#define MANY 10000
#define CQS  4 /* a CQ takes the receives of 4096 queue pairs */

static size_t segment_bytes(void)
{
    char line[256];
    size_t kb = 0, n;
    bool ours = false;
    FILE *f = fopen("/proc/self/smaps", "re");

    while (f && fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strchr(line, '/'))
            ours = strstr(line, "memfd:softhca") != NULL;
        else if (ours && sscanf(line, "Rss: %zu", &n) == 1)
            kb += n;
    }
    if (f)
        fclose(f);
    return kb * 1024;
}

/* Memory of a queue pair with the smallest queues, besides the page of its receive queue. */
static void price_of_a_queue_pair(void)
{
    static const struct end_options without = {.no_qp = true};
    static struct ibv_qp *qps[MANY];
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_cq *cq[CQS];
    size_t heap, segment;
    struct end e;

    setenv("SOFTHCA_MAX_QP", "16000", 1);
    end_open(&e, &without);
    init.send_cq = e.scq;
    for (int i = 0; i < CQS; i++)
        CHECK((cq[i] = ibv_create_cq(e.ctx, 16, NULL, NULL, 0)) != NULL);
    heap = mallinfo2().uordblks;
    segment = segment_bytes();
    for (int i = 0; i < MANY; i++) {
        init.recv_cq = cq[i % CQS];
        init.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
        qps[i] = ibv_create_qp(e.pd, &init);
        CHECK(qps[i] != NULL);
    }
    heap = (mallinfo2().uordblks - heap) / MANY;
    segment = (segment_bytes() - segment) / MANY;
    printf("     a queue pair takes %zu bytes of heap, %zu of the segment\n", heap, segment);
    CHECK(heap + segment <= 4096);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(ibv_destroy_qp(qps[i]), 0);
    for (int i = 0; i < CQS; i++)
        CHECK_EQ(ibv_destroy_cq(cq[i]), 0);
    end_close(&e);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"translation", translation},
        {"access_and_domain", access_and_domain},
        {"refused_change", refused_change},
        {"advice", advice},
        {"paging_is_not_offered", paging_is_not_offered},
        {"paging_of_all", paging_of_all},
        {"paging_without_atomics", paging_without_atomics},
        {"paging_of_datagrams", paging_of_datagrams},
        {"pages_on_demand", pages_on_demand},
        {"device_memory", device_memory},
        {"price_of_a_queue_pair", price_of_a_queue_pair},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
