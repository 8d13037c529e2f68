/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles of devices (SOFTHCA_PROFILE): a device reports what the table says, and each special
 * behaviour is observed. Each case is a process of its own: settings are read once. Owns nothing
 * beyond each case. */
#include "config.h"

#include "tests/softhca/profiles.h"

/* ---- attributes ---- */

/* Names the profile and the attribute. */
#define SAME(p, attribute, got, expected)                                                          \
    do {                                                                                           \
        unsigned long long got_ = (unsigned long long)(got),                                       \
                           expected_ = (unsigned long long)(expected);                             \
        if (got_ != expected_) {                                                                   \
            fprintf(stderr, "%s: %s is %llu, not %llu\n", (p)->name, attribute, got_, expected_);  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void same_limits(const struct shca_profile *p, const struct ibv_device_attr *a)
{
    SAME(p, "max_mr_size", a->max_mr_size, p->max_mr_size);
    SAME(p, "page_size_cap", a->page_size_cap, p->page_size_cap);
    SAME(p, "max_qp", a->max_qp, p->max_qp);
    SAME(p, "max_qp_wr", a->max_qp_wr, p->max_qp_wr);
    SAME(p, "max_sge", a->max_sge, p->max_sge);
    SAME(p, "max_sge_rd", a->max_sge_rd, p->max_sge_rd);
    SAME(p, "max_cq", a->max_cq, p->max_cq);
    SAME(p, "max_cqe", a->max_cqe, p->max_cqe);
    SAME(p, "max_mr", a->max_mr, p->max_mr);
    SAME(p, "max_pd", a->max_pd, p->max_pd);
    SAME(p, "max_ah", a->max_ah, p->max_ah);
    SAME(p, "max_srq", a->max_srq, p->max_srq);
    SAME(p, "max_srq_wr", a->max_srq_wr, p->max_srq_wr);
    SAME(p, "max_srq_sge", a->max_srq_sge, p->max_srq_sge);
    SAME(p, "max_qp_rd_atom", a->max_qp_rd_atom, p->max_rd_atom);
    SAME(p, "max_qp_init_rd_atom", a->max_qp_init_rd_atom, p->max_init_rd_atom);
    SAME(p, "max_res_rd_atom", a->max_res_rd_atom, p->max_res_rd_atom);
    SAME(p, "max_mcast_grp", a->max_mcast_grp, p->max_mcast_grp);
    SAME(p, "max_pkeys", a->max_pkeys, p->pkeys);
}

static void same_device(const struct shca_profile *p, struct ibv_context *ctx)
{
    struct ibv_device_attr_ex ex;
    struct ibv_device_attr a;
    char name[32];

    CHECK_EQ(ibv_query_device(ctx, &a), 0);
    CHECK_EQ(ibv_query_device_ex(ctx, NULL, &ex), 0);
    CHECK(memcmp(&a, &ex.orig_attr, sizeof a) == 0);
    snprintf(name, sizeof name, "%s0", p->stem);
    CHECK(strcmp(ibv_get_device_name(ctx->device), name) == 0);
    CHECK(!p->firmware || strcmp(a.fw_ver, p->firmware) == 0);
    SAME(p, "vendor_id", a.vendor_id, p->vendor_id);
    SAME(p, "vendor_part_id", a.vendor_part_id, p->part_id);
    SAME(p, "hw_ver", a.hw_ver, p->hw_ver);
    SAME(p, "node_type", ctx->device->node_type, p->node_type);
    SAME(p, "transport_type", ctx->device->transport_type, p->transport);
    SAME(p, "device_cap_flags", a.device_cap_flags, p->cap_flags);
    SAME(p, "atomic_cap", a.atomic_cap, p->atomic_cap);
    SAME(p, "local_ca_ack_delay", a.local_ca_ack_delay, p->ack_delay);
    SAME(p, "phys_port_cnt", a.phys_port_cnt, p->ports);
    SAME(p, "odp", ex.odp_caps.general_caps & IBV_ODP_SUPPORT, p->odp != 0);
    SAME(p, "odp of atomics",
         (ex.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC) != 0, p->odp == 1);
    SAME(p, "max_dm_size", ex.max_dm_size, p->dm_bytes);
    same_limits(p, &a);
}

static void same_gids(const struct shca_profile *p, struct ibv_context *ctx, int port, int rows)
{
    struct ibv_gid_entry e;

    for (int i = 0; i < rows; i++) {
        CHECK_EQ(ibv_query_gid_ex(ctx, (uint32_t)port, (uint32_t)i, &e, 0), 0);
        if (p->link == SHCA_LINK_IB)
            SAME(p, "gid_type", e.gid_type, IBV_GID_TYPE_IB);
        else
            CHECK(p->gid_types & (e.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2u : 1u));
    }
}

static void same_pkeys(const struct shca_profile *p, struct ibv_context *ctx, int port)
{
    __be16 key;

    CHECK_EQ(ibv_query_pkey(ctx, (uint8_t)port, 0, &key), 0);
    CHECK(key == 0xffff);
    CHECK_EQ(ibv_query_pkey(ctx, (uint8_t)port, (int)p->pkeys - 1, &key), 0);
    CHECK_EQ(ibv_query_pkey(ctx, (uint8_t)port, (int)p->pkeys, &key), -1);
}

/* Words of SOFTHCA_SPEED and the codes of the specification (14.2.5.6). */
static void same_speed(const struct shca_profile *p, const struct ibv_port_attr *a)
{
    static const struct {
        const char *word;
        uint8_t width, speed;
    } codes[] = {{"1xsdr", 1, 1},  {"1xqdr", 1, 4},  {"1xedr", 1, 32}, {"4xqdr", 2, 4},
                 {"4xfdr", 2, 16}, {"4xedr", 2, 32}, {"4xndr", 2, 128}};
    size_t i = 0;

    while (strcmp(codes[i].word, p->speed) != 0)
        CHECK(++i < sizeof codes / sizeof codes[0]);
    SAME(p, "active_width", a->active_width, codes[i].width);
    SAME(p, "active_speed", a->active_speed, codes[i].speed);
}

static void same_port(const struct shca_profile *p, struct ibv_context *ctx, int port)
{
    static const uint8_t layers[] = {[SHCA_LINK_IB] = IBV_LINK_LAYER_INFINIBAND,
                                     [SHCA_LINK_ROCE] = IBV_LINK_LAYER_ETHERNET,
                                     [SHCA_LINK_IWARP] = IBV_LINK_LAYER_ETHERNET,
                                     [SHCA_LINK_UNKNOWN] = IBV_LINK_LAYER_UNSPECIFIED};
    struct ibv_port_attr a;
    bool ib = p->link == SHCA_LINK_IB;

    CHECK_EQ(ibv_query_port(ctx, (uint8_t)port, &a), 0);
    SAME(p, "state", a.state, IBV_PORT_ACTIVE);
    SAME(p, "max_mtu", a.max_mtu, p->mtu);
    SAME(p, "active_mtu", a.active_mtu, ib ? p->mtu : p->ethernet_mtu);
    SAME(p, "link_layer", a.link_layer, layers[p->link]);
    SAME(p, "max_msg_sz", a.max_msg_sz, p->max_msg);
    SAME(p, "pkey_tbl_len", a.pkey_tbl_len, p->pkeys);
    SAME(p, "gid_tbl_len", a.gid_tbl_len, ib ? 1 : p->gid_types == 3 ? 4 : 2);
    if (ib)
        CHECK(a.lid != 0 && p->lid == 0);
    else
        SAME(p, "lid", a.lid, p->lid);
    SAME(p, "flags", a.flags, p->link == SHCA_LINK_ROCE);
    same_speed(p, &a);
    same_gids(p, ctx, port, a.gid_tbl_len);
    same_pkeys(p, ctx, port);
}

static void reports_what_the_table_has(const struct shca_profile *p)
{
    struct ibv_port_attr none;
    struct ibv_context *ctx;

    setenv("SOFTHCA_PROFILE", p->name, 1);
    ctx = open_softhca(0);
    same_device(p, ctx);
    for (int port = 1; port <= (int)p->ports; port++)
        same_port(p, ctx, port);
    CHECK_EQ(ibv_query_port(ctx, (uint8_t)(p->ports + 1), &none), EINVAL);
    CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Settings are read once in a process. */
static void all_report_what_the_table_has(void)
{
    for (size_t i = 0; i < shca_profile_count; i++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            reports_what_the_table_has(&shca_profiles[i]);
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
}

/* Each field of the table has a sentence, and each profile names its source. */
static void table_is_documented(void)
{
    for (size_t i = 0; i < shca_profile_field_count; i++)
        CHECK(*shca_profile_fields[i].doc);
    for (size_t i = 0; i < shca_profile_count; i++)
        CHECK(shca_profiles[i].source && *shca_profiles[i].source);
}

static void several_in_a_process(void)
{
    const struct shca_profile *first = of_name("connectx-5"), *second = of_name("e810-roce");
    struct ibv_context *a, *b;
    int n;

    setenv("SOFTHCA_PROFILE", "connectx-5,e810-roce", 1);
    ibv_free_device_list(ibv_get_device_list(&n));
    CHECK_EQ(n, 2);
    a = open_softhca(0);
    b = open_softhca(1);
    same_device(first, a);
    same_device(second, b);
    same_port(first, a, 1);
    same_port(second, b, 1);
}

static void of_one_driver(void)
{
    setenv("SOFTHCA_PROFILE", "connectx-5,siw,connectx-7", 1);
    CHECK(strcmp(ibv_get_device_name(open_softhca(0)->device), "mlx5_0") == 0);
    CHECK(strcmp(ibv_get_device_name(open_softhca(1)->device), "siw0") == 0);
    CHECK(strcmp(ibv_get_device_name(open_softhca(2)->device), "mlx5_1") == 0);
}

static void settings_win(void)
{
    struct ibv_device_attr a;
    struct ibv_port_attr port;
    struct ibv_context *ctx;

    setenv("SOFTHCA_PROFILE", "qedr", 1);
    setenv("SOFTHCA_MAX_SGE", "2", 1);
    setenv("SOFTHCA_LINK", "ib", 1);
    setenv("SOFTHCA_PORTS", "3", 1);
    setenv("SOFTHCA_HCAS", "2", 1);
    ctx = open_softhca(1);
    CHECK_EQ(ibv_query_device(ctx, &a), 0);
    CHECK_EQ(a.max_sge, 2);
    CHECK_EQ(a.phys_port_cnt, 3);
    CHECK_EQ(a.vendor_id, 0x1077);
    CHECK_EQ(ibv_query_port(ctx, 3, &port), 0);
    CHECK_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
}

/* Without a profile the device is softhca's own, whatever else is set. */
static void default_stays(void)
{
    const struct shca_profile *p = of_name("softhca");
    struct ibv_context *ctx;

    unsetenv("SOFTHCA_PROFILE");
    ctx = open_softhca(0);
    same_device(p, ctx);
    same_port(p, ctx, 1);
}

/* ---- queue pairs ---- */

/* The errno of ibv_create_qp; 0: it was created and destroyed, and *cap has what it returned. */
static int create(const struct parts *o, enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr init = {
        .send_cq = o->cq, .recv_cq = o->cq, .qp_type = type, .cap = *cap};
    struct ibv_qp *qp = ibv_create_qp(o->pd, &init);

    if (!qp)
        return errno;
    *cap = init.cap;
    CHECK_EQ(ibv_destroy_qp(qp), 0);
    return 0;
}

static int create_rc(const struct parts *o, uint32_t depth, uint32_t list, uint32_t bytes)
{
    struct ibv_qp_cap cap = {depth, 1, list, 1, bytes};

    return create(o, IBV_QPT_RC, &cap);
}

/* mlx5: a send queue has a limited number of 64-byte blocks. */
static void queue_of_blocks(void)
{
    struct parts o;

    use_profile("connectx-5");
    o = open_parts();
    CHECK_EQ(create_rc(&o, 32768, 1, 512), ENOMEM);
    CHECK_EQ(create_rc(&o, 32768, 2, 0), 0);
    CHECK_EQ(create_rc(&o, 32768, 3, 0), ENOMEM);
    CHECK_EQ(create_rc(&o, 3640, 1, 512), 0);
    CHECK_EQ(create_rc(&o, 32769, 1, 0), EINVAL);
    CHECK_EQ(create_rc(&o, 16, 1, 989), EINVAL);
    CHECK_EQ(create_rc(&o, 16, 1, 988), 0);
}

static void sizes_refused(void)
{
    struct parts o;

    use_profile("qedr");
    o = open_parts();
    CHECK_EQ(create_rc(&o, 16, 4, 128), 0);
    CHECK_EQ(create_rc(&o, 16, 4, 129), EINVAL);
    CHECK_EQ(create_rc(&o, 16, 5, 0), EINVAL);
    CHECK_EQ(create_rc(&o, 32768, 1, 0), EINVAL);
}

static void inline_by_type(void)
{
    struct ibv_qp_cap rc = {16, 16, 1, 1, 600}, ud = rc;
    struct parts o;

    use_profile("connectx-4");
    o = open_parts();
    CHECK_EQ(create(&o, IBV_QPT_RC, &rc), 0);
    CHECK(rc.max_inline_data >= 600);
    CHECK_EQ(create(&o, IBV_QPT_UD, &ud), EINVAL);
    ud.max_inline_data = 512;
    CHECK_EQ(create(&o, IBV_QPT_UD, &ud), 0);
}

static void returns_more(void)
{
    struct ibv_qp_cap cap = {100, 100, 3, 3, 50};
    struct parts o;

    use_profile("connectx-5");
    o = open_parts();
    CHECK_EQ(create(&o, IBV_QPT_RC, &cap), 0);
    CHECK_EQ(cap.max_send_wr, 128);
    CHECK_EQ(cap.max_recv_wr, 128);
    CHECK_EQ(cap.max_inline_data, 2 * 64 - 32 - 4);
}

/* bnxt: one entry stays empty, and the depth after rounding must fit. */
static void rounding_must_fit(void)
{
    struct parts o;

    use_profile("bnxt");
    o = open_parts();
    CHECK_EQ(create_rc(&o, 4096, 1, 0), EINVAL);
    CHECK_EQ(create_rc(&o, 4095, 1, 0), 0);
}

static void inline_is_dropped(void)
{
    struct ibv_qp_cap cap = {16, 16, 1, 1, 200};
    struct parts o;

    use_profile("hfi1");
    o = open_parts();
    CHECK_EQ(create(&o, IBV_QPT_RC, &cap), 0);
    CHECK_EQ(cap.max_inline_data, 0);
}

static void types_missing(void)
{
    static const struct {
        const char *name;
        enum ibv_qp_type type;
    } missing[] = {{"efa", IBV_QPT_RC},  {"mana", IBV_QPT_RC},  {"mana", IBV_QPT_UD},
                   {"siw", IBV_QPT_UD},  {"erdma", IBV_QPT_UD}, {"qedr", IBV_QPT_UC},
                   {"cxgb4", IBV_QPT_UD}};

    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            struct ibv_qp_cap cap = {16, 16, 1, 1, 0};
            struct parts o;

            use_profile(missing[i].name);
            o = open_parts();
            CHECK_EQ(create(&o, missing[i].type, &cap), EOPNOTSUPP);
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
}

static void no_shared_queues(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct parts o;

    use_profile("e810-roce");
    o = open_parts();
    CHECK(ibv_create_srq(o.pd, &init) == NULL);
    CHECK_EQ(errno, EOPNOTSUPP);
    CHECK(ibv_open_xrcd(o.ctx, &domain) == NULL);
    CHECK_EQ(errno, EOPNOTSUPP);
}

/* ---- main ---- */

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"all_report_what_the_table_has", all_report_what_the_table_has},
        {"table_is_documented", table_is_documented},
        {"several_in_a_process", several_in_a_process},
        {"of_one_driver", of_one_driver},
        {"settings_win", settings_win},
        {"default_stays", default_stays},
        {"queue_of_blocks", queue_of_blocks},
        {"sizes_refused", sizes_refused},
        {"inline_by_type", inline_by_type},
        {"returns_more", returns_more},
        {"rounding_must_fit", rounding_must_fit},
        {"inline_is_dropped", inline_is_dropped},
        {"types_missing", types_missing},
        {"no_shared_queues", no_shared_queues},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
