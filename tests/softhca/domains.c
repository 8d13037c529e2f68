/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread and parent domains; and verbs that softhca does not offer return an error and do not
 * crash. Owns nothing beyond each case. */
#include "config.h"

#include "harness.h"

/* Which domains may be made of which, and how long each must exist. */
static void life_of_domains(void)
{
    struct ibv_td_init_attr td_init = {0}, td_bad = {.comp_mask = 1};
    struct ibv_parent_domain_init_attr init = {0};
    struct ibv_context *ctx = open_softhca(0);
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
    struct ibv_td *td;

    CHECK(!ibv_alloc_td(ctx, &td_bad) && errno == EINVAL);
    CHECK((td = ibv_alloc_td(ctx, &td_init)) != NULL);
    CHECK(!ibv_alloc_parent_domain(ctx, &init) && errno == EINVAL);
    init.pd = pd;
    init.td = td;
    init.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    CHECK(!ibv_alloc_parent_domain(ctx, &init) && errno == EINVAL); /* which ones? */
    init.comp_mask = 1 << 7;
    CHECK(!ibv_alloc_parent_domain(ctx, &init) && errno == EOPNOTSUPP);
    init.comp_mask = 0;
    CHECK((parent = ibv_alloc_parent_domain(ctx, &init)) != NULL);
    CHECK_EQ(ibv_dealloc_td(td), EBUSY);
    CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
    init.pd = parent; /* no parents of parents */
    CHECK(!ibv_alloc_parent_domain(ctx, &init) && errno == EINVAL);
    /* A CQ takes a parent domain and nothing else. */
    struct ibv_cq_init_attr_ex cq = {
        .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd};
    CHECK(!ibv_create_cq_ex(ctx, &cq) && errno == EINVAL);
    cq.parent_domain = parent;
    struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &cq);
    CHECK(ex != NULL);
    CHECK_EQ(ibv_dealloc_pd(parent), EBUSY);
    CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    CHECK_EQ(ibv_dealloc_pd(parent), 0);
    CHECK_EQ(ibv_dealloc_td(td), 0);
    CHECK_EQ(ibv_dealloc_pd(pd), 0);
    CHECK_EQ(ibv_close_device(ctx), 0);
}

static struct ibv_pd *parent_of(struct ibv_pd *pd)
{
    struct ibv_parent_domain_init_attr init = {.pd = pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(pd->context, &init);

    CHECK(parent != NULL);
    return parent;
}

/* A queue pair of the parent uses the regions of the PD. */
static void shared_regions(void)
{
    static const struct end_options without = {.no_qp = true}, usual;
    struct ibv_pd *pd, *parent;
    struct address to_self;
    struct end e;

    end_open(&e, &without);
    pd = e.pd;
    e.pd = parent = parent_of(pd);
    end_qp(&e, &usual);
    to_self = address_of(&e);
    connect_to(&e, &to_self);
    fill(e.buf, 100, 1);
    CHECK_EQ(post_recv(&e, 1, 500, 100), 0);
    CHECK_EQ(post_send(&e, 2, 0, 100, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_SUCCESS);
    CHECK(filled(e.buf + 500, 100, 1));
    CHECK_EQ(ibv_dealloc_pd(parent), EBUSY);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    e.pd = pd;
    CHECK_EQ(ibv_dealloc_pd(parent), 0);
    end_close(&e);
}

/* And its address handles. */
static void shared_addresses(void)
{
    static const struct end_options without = {.no_qp = true}, ud = {.type = IBV_QPT_UD};
    struct ibv_qp_attr up = {.qp_state = IBV_QPS_RTR};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
    struct ibv_ah_attr path;
    struct address to_self;
    struct ibv_pd *pd;
    struct end e;

    end_open(&e, &without);
    pd = e.pd;
    e.pd = parent_of(pd);
    end_qp(&e, &ud);
    to_self = address_of(&e);
    path = path_to(&to_self);
    CHECK((wr.wr.ud.ah = ibv_create_ah(pd, &path)) != NULL);
    to_init(e.qp);
    CHECK_EQ(ibv_modify_qp(e.qp, &up, IBV_QP_STATE), 0);
    up.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e.qp, &up, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    CHECK_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
    CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    CHECK_EQ(ibv_dealloc_pd(e.pd), 0);
    e.pd = pd;
    end_close(&e);
}

/* The memory of queues comes from the allocator of the parent domain, and goes back there. */
static char arena[1 << 20] __attribute__((aligned(4096)));

struct ledger {
    void *answer;
    int allocated, freed;
};

static void *take_memory(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                         uint64_t type)
{
    struct ledger *l = context;

    CHECK(pd && size <= sizeof arena && 4096 % alignment == 0 && type != 0);
    l->allocated++;
    return l->answer;
}

static void give_memory(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
    struct ledger *l = context;

    CHECK(pd && ptr == arena && type != 0);
    l->freed++;
}

static void allocators(void)
{
    static const struct end_options without = {.no_qp = true}, usual;
    struct ledger l = {.answer = NULL};
    struct ibv_parent_domain_init_attr init = {.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                            IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                               .alloc = take_memory,
                                               .free = give_memory,
                                               .pd_context = &l};
    struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_pd *pd, *parent;
    struct address to_self;
    struct end e;

    end_open(&e, &without);
    init.pd = pd = e.pd;
    CHECK((parent = ibv_alloc_parent_domain(e.ctx, &init)) != NULL);
    qp.send_cq = qp.recv_cq = e.scq;
    CHECK(!ibv_create_qp(parent, &qp) && errno == ENOMEM);
    CHECK(l.allocated == 1 && l.freed == 0);
    e.pd = parent;
    l.answer = IBV_ALLOCATOR_USE_DEFAULT;
    end_qp(&e, &usual);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    CHECK(l.allocated == 2 && l.freed == 0);
    l.answer = memset(arena, 0xff, sizeof arena);
    end_qp(&e, &usual);
    to_self = address_of(&e);
    connect_to(&e, &to_self);
    /* A waiting request is kept in this memory. */
    CHECK_EQ(post_send(&e, 1, 0, 8, IBV_SEND_INLINE), 0);
    CHECK_EQ(post_recv(&e, 2, 64, 8), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK(memchr(arena, 0, sizeof arena) != NULL);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    CHECK(l.allocated == 3 && l.freed == 1);
    e.qp = NULL;
    e.pd = pd;
    CHECK_EQ(ibv_dealloc_pd(parent), 0);
    end_close(&e);
}

#define NOT_OFFERED(call)                                                                          \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK((call) == NULL && errno == EOPNOTSUPP);                                              \
    } while (0)

/* Every empty entry of the table, and every exported verb that is not offered. */
static void not_offered(void)
{
    static const struct end_options usual;
    struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof flow, .port = 1};
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1};
    struct ibv_rwq_ind_table_init_attr table = {0};
    struct ibv_flow_action_esp_attr esp = {0};
    struct ibv_counters_init_attr counters = {0};
    struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
    struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1};
    struct ibv_ece ece = {0};
    struct ibv_gid_entry gid;
    struct end e;

    end_open(&e, &usual);
    NOT_OFFERED(ibv_alloc_mw(e.pd, IBV_MW_TYPE_1));
    NOT_OFFERED(ibv_alloc_mw(e.pd, IBV_MW_TYPE_2));
    NOT_OFFERED(ibv_create_flow(e.qp, &flow));
    NOT_OFFERED(ibv_create_flow_action_esp(e.ctx, &esp));
    NOT_OFFERED(ibv_create_wq(e.ctx, &wq));
    NOT_OFFERED(ibv_create_rwq_ind_table(e.ctx, &table));
    NOT_OFFERED(ibv_create_counters(e.ctx, &counters));
    NOT_OFFERED(ibv_alloc_null_mr(e.pd));
    NOT_OFFERED(ibv_import_pd(e.ctx, 1));
    NOT_OFFERED(ibv_import_mr(e.pd, 1));
    NOT_OFFERED(ibv_import_dm(e.ctx, 1));
    CHECK_EQ(ibv_modify_cq(e.rcq, &moderate), EOPNOTSUPP);
    CHECK_EQ(ibv_modify_qp_rate_limit(e.qp, &rate), EOPNOTSUPP);
    CHECK_EQ(ibv_query_ece(e.qp, &ece), EOPNOTSUPP);
    CHECK_EQ(ibv_set_ece(e.qp, &ece), EOPNOTSUPP);
    CHECK_EQ(ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0), 0);
    CHECK_EQ(ibv_query_gid_table(e.ctx, &gid, 0, 0), -EINVAL);
    ibv_unimport_pd(e.pd); /* of no effect on what was not imported */
    end_close(&e);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"life_of_domains", life_of_domains},   {"shared_regions", shared_regions},
        {"shared_addresses", shared_addresses}, {"allocators", allocators},
        {"not_offered", not_offered},           {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
