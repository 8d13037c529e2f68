/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ports can communicate: partitions (P_Keys), the GIDs of a RoCE port and their two kinds of
 * frames, the MTU of a path, the way back from a received datagram, and multicast groups. */
#include "config.h"

#include <arpa/inet.h>

#include "harness.h"

#define QKEY 0x11111

/* ---- connections ---- */

static void begin(struct end *e, uint16_t pkey_index)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = pkey_index};

    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
             0);
}

static void finish(struct end *e, const struct address *to, uint8_t sgid_index)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = to->qpn,
                            .rq_psn = to->psn,
                            .ah_attr = path_to(to)};

    a.ah_attr.grh.sgid_index = sgid_index;
    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             0);
    to_rts(e, 8, 7); /* 1 ms, eight times */
}

/* A message from one P_Key or GID index to another: arrives, or the retries run out. */
static void message(uint16_t pkey_a, uint16_t pkey_b, uint8_t gid_a, uint8_t gid_b, bool arrives)
{
    struct end a, b;
    struct address to_a, to_b;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    CHECK_EQ(ibv_query_gid(a.ctx, 1, gid_a, &to_a.gid), 0);
    CHECK_EQ(ibv_query_gid(b.ctx, 1, gid_b, &to_b.gid), 0);
    begin(&a, pkey_a);
    begin(&b, pkey_b);
    finish(&a, &to_b, gid_a);
    finish(&b, &to_a, gid_b);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 2, 0, 64, 0), 0);
    if (arrives) {
        CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    } else {
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
        no_wc(b.rcq);
    }
    close_two(&a, &b);
}

static void partitions(void)
{
    message(0, 0, 0, 0, true);
    message(1, 1, 0, 0, true);
    message(0, 1, 0, 0, false);
    message(1, 0, 0, 0, false);
}

static void pkey_table(void)
{
    struct ibv_context *ctx = open_softhca(0);
    struct ibv_port_attr port;
    __be16 pkey;

    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.pkey_tbl_len, 2);
    CHECK_EQ(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
    CHECK_EQ(pkey, htons(0xffff));
    CHECK_EQ(ibv_query_pkey(ctx, 1, 1, &pkey), 0);
    CHECK_EQ(pkey, htons(0x8001));
    CHECK_EQ(ibv_query_pkey(ctx, 1, 2, &pkey), -1);
    CHECK_EQ(ibv_get_pkey_index(ctx, 1, htons(0x8001)), 1);
    CHECK_EQ(ibv_get_pkey_index(ctx, 1, htons(0x8002)), -1);
    CHECK_EQ(ibv_close_device(ctx), 0);
}

static void gid_table(void)
{
    struct ibv_context *ctx;
    struct ibv_port_attr port;
    struct ibv_gid_entry e[8];

    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_HCAS", "2", 1);
    ctx = open_softhca(1);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.gid_tbl_len, 4);
    CHECK_EQ(ibv_query_gid_table(ctx, e, 8, 0), 4);
    for (unsigned i = 0; i < 4; i++) {
        const uint8_t ipv4[16] = {
            [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 83, [14] = 1, [15] = 1};

        CHECK_EQ(e[i].gid_index, i);
        CHECK_EQ(e[i].gid_type, i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
        if (i < 2)
            CHECK(e[i].gid.raw[0] == 0xfe && e[i].gid.raw[1] == 0x80);
        else
            CHECK(memcmp(e[i].gid.raw, ipv4, 16) == 0);
    }
    CHECK_EQ(ibv_close_device(ctx), 0);
}

/* The GIDs of a process with one type. */
static void gids_of_one_type(const char *setting, enum ibv_gid_type type)
{
    struct ibv_context *ctx;
    struct ibv_gid_entry e[8];

    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_ROCE", setting, 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_gid_table(ctx, e, 8, 0), 2);
    CHECK_EQ(e[0].gid_type, type);
    CHECK_EQ(e[1].gid_type, type);
    CHECK_EQ(e[0].gid.raw[0], 0xfe);
    CHECK_EQ(e[1].gid.raw[10], 0xff);
    CHECK_EQ(ibv_close_device(ctx), 0);
    message(0, 0, 1, 1, true);
}

static void gids_of_version_1(void)
{
    gids_of_one_type("1", IBV_GID_TYPE_ROCE_V1);
}

static void gids_of_version_2(void)
{
    gids_of_one_type("2", IBV_GID_TYPE_ROCE_V2);
}

static void subnets(void)
{
    struct ibv_context *ctx;
    union ibv_gid gid;

    setenv("SOFTHCA_SUBNET", "7", 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_gid(ctx, 1, 0, &gid), 0);
    CHECK_EQ(gid.global.subnet_prefix, htobe64(UINT64_C(0xfec0000000000007)));
    CHECK_EQ(ibv_close_device(ctx), 0);
    message(0, 0, 0, 0, true);
}

/* A table with empty entries; in a VLAN; IPv6 */
static void gid_rows(void)
{
    struct ibv_context *ctx;
    struct ibv_port_attr port;
    struct ibv_gid_entry e[16];
    union ibv_gid gid, zero = {.raw = {0}};
    const uint8_t vlan[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 105, [15] = 1};
    const uint8_t ipv6[16] = {0xfd, 0x53, 0x48, 0x43, 0x41, 0, 1, 0, [15] = 1};

    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_GIDS", "-+ipv4@5+-+ipv6", 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.gid_tbl_len, 6);
    CHECK_EQ(ibv_query_gid_ex(ctx, 1, 0, e, 0), ENODATA);
    CHECK_EQ(ibv_query_gid_ex(ctx, 1, 6, e, 0), EINVAL);
    CHECK_EQ(ibv_query_gid(ctx, 1, 0, &gid), 0);
    CHECK(memcmp(&gid, &zero, sizeof gid) == 0);
    CHECK_EQ(ibv_query_gid_table(ctx, e, 16, 0), 4);
    CHECK_EQ(e[1].gid_index, 2);
    CHECK(memcmp(e[1].gid.raw, vlan, 16) == 0);
    CHECK_EQ(e[3].gid_index, 5);
    CHECK(memcmp(e[3].gid.raw, ipv6, 16) == 0);
    CHECK_EQ(ibv_close_device(ctx), 0);
}

static void vlans(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_GIDS", "link+ipv4+link@5+ipv4@5+ipv6@7", 1);
    message(0, 0, 7, 7, true);
    message(0, 0, 3, 7, true); /* v2, by a router */
    message(0, 0, 7, 9, true);
    message(0, 0, 2, 6, false); /* v1, and link-local, without */
    message(0, 0, 1, 5, false);
}

static void vlans_without_a_router(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_GIDS", "link+ipv4+link@5+ipv4@5", 1);
    setenv("SOFTHCA_ROUTER", "0", 1);
    message(0, 0, 7, 7, true);
    message(0, 0, 3, 7, false);
}

static void roce_frames(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    for (uint8_t i = 0; i < 4; i++)
        message(0, 0, i, i, true);
    message(0, 0, 0, 2, true); /* v1 both: the address is another, the frame is not */
    message(0, 0, 0, 1, false);
    message(0, 0, 3, 2, false);
}

/* ---- the MTU of a path ---- */

static void with_mtu(struct end *e, const struct address *to, enum ibv_mtu mtu)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = mtu,
                            .dest_qp_num = to->qpn,
                            .rq_psn = to->psn,
                            .max_dest_rd_atomic = 1,
                            .ah_attr = path_to(to)};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN |
                               (e->qp->qp_type == IBV_QPT_UC
                                    ? 0
                                    : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
             0);
    to_rts(e, 8, 7);
}

/* Checks the result at one end when the other uses packets of another size. */
static void cut(enum ibv_mtu mtu_a, enum ibv_mtu mtu_b, enum ibv_wr_opcode op, size_t length,
                enum ibv_wc_status status, bool breaks)
{
    struct address to_a, to_b;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    with_mtu(&a, &to_b, mtu_a);
    with_mtu(&b, &to_a, mtu_b);
    CHECK_EQ(post_recv(&b, 1, 0, 65536), 0);
    CHECK_EQ(post(&a, op, 2, 0, length, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, status);
    if (breaks)
        CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_WR_FLUSH_ERR);
    else if (op != IBV_WR_SEND)
        no_wc(b.rcq);
    close_two(&a, &b);
}

/* All packets of a message except the last have the length of the MTU: an end that expects another
 * size refuses messages that do not fit into the smaller one. */
static void path_mtu(void)
{
    const enum ibv_mtu k1 = IBV_MTU_1024, k4 = IBV_MTU_4096;

    cut(k4, k1, IBV_WR_SEND, 1024, IBV_WC_SUCCESS, false);
    cut(k4, k1, IBV_WR_SEND, 1025, IBV_WC_REM_INV_REQ_ERR, true);
    cut(k1, k4, IBV_WR_RDMA_WRITE, 1025, IBV_WC_REM_INV_REQ_ERR, true);
    cut(k1, k4, IBV_WR_RDMA_READ, 1024, IBV_WC_SUCCESS, false);
    cut(k1, k4, IBV_WR_RDMA_READ, 1025, IBV_WC_BAD_RESP_ERR, false);
    cut(k4, k4, IBV_WR_RDMA_READ, 65536, IBV_WC_SUCCESS, false);
}

/* ---- datagrams ---- */

static void ud_open(struct end *e, uint16_t pkey_index)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = pkey_index, .qkey = QKEY};

    end_open(e, &(struct end_options){.type = IBV_QPT_UD});
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
             0);
    a.qp_state = IBV_QPS_RTR;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void ud_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct ibv_sge sge = sge_of(e, 0, 100);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}};
    struct ibv_send_wr *bad;

    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
}

static void datagram_partitions(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct end a, b;
        struct address to;
        struct ibv_ah_attr path;
        struct ibv_ah *ah;

        ud_open(&a, i & 1);
        ud_open(&b, (uint16_t)(i >> 1));
        to = address_of(&b);
        path = path_to(&to);
        CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
        CHECK_EQ(post_recv(&b, 1, 0, 140), 0);
        ud_send(&a, ah, to.qpn, QKEY);
        if ((i & 1) == i >> 1)
            CHECK_EQ(wait_wc(b.rcq).pkey_index, i & 1);
        else
            no_wc(b.rcq);
        CHECK_EQ(ibv_destroy_ah(ah), 0);
        close_two(&a, &b);
    }
}

/* The first 40 bytes: a GRH that announces a BTH (v1) or UDP (v2), or, with IPv4 addresses, twenty
 * bytes of nothing and an IPv4 header (annex A17.4.5.2). */
static void check_header(struct end *e, unsigned index)
{
    const uint8_t *h = (const uint8_t *)e->buf, from[4] = {10, 83, 0, 1};
    unsigned sum = 0;

    if (index != 3) {
        CHECK_EQ(h[0] >> 4, 6);
        CHECK_EQ(h[6], index % 2 ? 17 : 0x1b);
        return;
    }
    CHECK_EQ(h[20], 0x45);
    CHECK_EQ(h[29], 17);
    CHECK_EQ(h[22] << 8 | h[23], 20 + 8 + 12 + 8 + 100 + 4);
    CHECK(memcmp(h + 32, from, 4) == 0);
    for (unsigned i = 20; i < 40; i += 2)
        sum += (unsigned)(h[i] << 8 | h[i + 1]);
    CHECK_EQ((sum & 0xffff) + (sum >> 16), 0xffff);
}

/* The header of what arrived leads back, whichever GID it was sent from. */
static void way_back(void)
{
    struct end a, b;

    setenv("SOFTHCA_LINK", "roce", 1);
    ud_open(&a, 0);
    ud_open(&b, 0);
    for (uint8_t i = 0; i < 4; i++) {
        struct address to = address_of(&b);
        struct ibv_ah_attr path, back;
        struct ibv_ah *ah;
        union ibv_gid gid;
        struct ibv_wc wc;

        CHECK_EQ(ibv_query_gid(b.ctx, 1, i, &to.gid), 0);
        path = path_to(&to);
        path.grh.sgid_index = i;
        CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
        CHECK_EQ(post_recv(&b, 1, 0, 140), 0);
        ud_send(&a, ah, to.qpn, QKEY);
        CHECK_EQ(ibv_destroy_ah(ah), 0);
        wc = wait_wc(b.rcq);
        CHECK(wc.wc_flags & IBV_WC_GRH);
        check_header(&b, i);
        CHECK_EQ(ibv_init_ah_from_wc(b.ctx, 1, &wc, (struct ibv_grh *)(void *)b.buf, &back), 0);
        CHECK_EQ(back.grh.sgid_index, i);
        CHECK_EQ(ibv_query_gid(a.ctx, 1, i, &gid), 0);
        CHECK(memcmp(&gid, &back.grh.dgid, sizeof gid) == 0);
        ah = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)(void *)b.buf, 1);
        CHECK(ah != NULL);
        CHECK_EQ(post_recv(&a, 1, 0, 140), 0);
        ud_send(&b, ah, wc.src_qp, QKEY);
        CHECK_EQ(wait_wc(a.rcq).byte_len, 140);
        CHECK_EQ(ibv_destroy_ah(ah), 0);
    }
    close_two(&a, &b);
}

static void lid_bits(uint8_t bits)
{
    struct address to;
    struct ibv_ah_attr path;
    struct ibv_port_attr port;
    struct ibv_ah *ah;
    struct end a, b;

    ud_open(&a, 0);
    ud_open(&b, 0);
    to = address_of(&b);
    CHECK_EQ(ibv_query_port(a.ctx, 1, &port), 0);
    path = path_to(&to);
    path.dlid = (uint16_t)(to.lid | bits);
    path.src_path_bits = 3u - bits;
    CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 140), 0);
    ud_send(&a, ah, to.qpn, QKEY);
    CHECK_EQ(wait_wc(b.rcq).slid, (port.lid | (3u - bits)));
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    close_two(&a, &b);
}

/* Ports with several LIDs: each reaches the port, and a datagram comes from the one that its sender
 * chose. */
static void lids(void)
{
    struct ibv_context *ctx;
    struct ibv_port_attr port;

    setenv("SOFTHCA_LMC", "2", 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.lmc, 2);
    CHECK_EQ(port.lid % 4, 0);
    CHECK_EQ(ibv_close_device(ctx), 0);
    for (uint8_t bits = 0; bits < 4; bits++)
        lid_bits(bits);
}

/* ---- multicast ---- */

#define MLID 0xc003

static union ibv_gid group(uint8_t number)
{
    return (union ibv_gid){.raw = {0xff, 0x12, 0xa0, 0x1b, [15] = number}};
}

static struct ibv_ah *group_ah(struct end *e, uint8_t number)
{
    struct ibv_ah_attr path = {.dlid = MLID, .port_num = 1, .is_global = 1};
    struct ibv_ah *ah;

    path.grh.dgid = group(number);
    CHECK((ah = ibv_create_ah(e->pd, &path)) != NULL);
    return ah;
}

static void attach(struct end *e, uint8_t number)
{
    union ibv_gid gid = group(number);

    CHECK_EQ(ibv_attach_mcast(e->qp, &gid, MLID), 0);
}

static void detach(struct end *e, uint8_t number)
{
    union ibv_gid gid = group(number);

    CHECK_EQ(ibv_detach_mcast(e->qp, &gid, MLID), 0);
}

static void attach_rules(void)
{
    struct end ud, rc;
    union ibv_gid gid = group(1), unicast;
    struct ibv_device_attr limits;

    ud_open(&ud, 0);
    end_open(&rc, NULL);
    CHECK_EQ(ibv_query_gid(ud.ctx, 1, 0, &unicast), 0);
    CHECK_EQ(ibv_query_device(ud.ctx, &limits), 0);
    CHECK(limits.max_mcast_grp > 0 && limits.max_mcast_qp_attach > 0);
    CHECK_EQ(ibv_attach_mcast(rc.qp, &gid, MLID), EINVAL);
    CHECK_EQ(ibv_attach_mcast(ud.qp, &unicast, MLID), EINVAL);
    CHECK_EQ(ibv_attach_mcast(ud.qp, &gid, 0x10), EINVAL);
    CHECK_EQ(ibv_detach_mcast(ud.qp, &gid, MLID), EINVAL);
    attach(&ud, 1);
    attach(&ud, 1); /* attaching again adds no second attachment */
    CHECK_EQ(ibv_destroy_qp(ud.qp), EBUSY);
    detach(&ud, 1);
    CHECK_EQ(ibv_detach_mcast(ud.qp, &gid, MLID), EINVAL);
    for (int i = 0; i < limits.max_total_mcast_qp_attach; i++) {
        gid.raw[12] = (uint8_t)(i >> 8);
        gid.raw[13] = (uint8_t)i;
        CHECK_EQ(ibv_attach_mcast(ud.qp, &gid, MLID), 0);
    }
    gid.raw[11] = 1;
    CHECK_EQ(ibv_attach_mcast(ud.qp, &gid, MLID), ENOMEM);
    gid.raw[11] = 0;
    for (int i = 0; i < limits.max_total_mcast_qp_attach; i++) {
        gid.raw[12] = (uint8_t)(i >> 8);
        gid.raw[13] = (uint8_t)i;
        CHECK_EQ(ibv_detach_mcast(ud.qp, &gid, MLID), 0);
    }
    close_two(&ud, &rc);
}

static void got(struct end *e, bool yes)
{
    struct ibv_wc wc;

    if (!yes) {
        no_wc(e->rcq);
        return;
    }
    wc = wait_wc(e->rcq);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.byte_len, 140);
    CHECK(wc.wc_flags & IBV_WC_GRH);
    CHECK(filled(e->buf + 1040, 100, 6));
    CHECK_EQ(post_recv(e, 1, 1000, 140), 0);
}

static void groups_of_one_process(void)
{
    struct end a, b, c;
    struct ibv_ah *one, *two;
    union ibv_gid gid = group(1);

    ud_open(&a, 0);
    ud_open(&b, 0);
    ud_open(&c, 0);
    one = group_ah(&a, 1);
    two = group_ah(&a, 2);
    CHECK_EQ(post_recv(&a, 1, 1000, 140), 0);
    CHECK_EQ(post_recv(&b, 1, 1000, 140), 0);
    CHECK_EQ(post_recv(&c, 1, 1000, 140), 0);
    fill(a.buf, 100, 6);
    attach(&b, 1);
    attach(&b, 2);
    attach(&c, 2);
#define SEND(ah, qpn, qkey, to_a, to_b, to_c)                                                      \
    do {                                                                                           \
        ud_send(&a, ah, qpn, qkey);                                                                \
        got(&a, to_a);                                                                             \
        got(&b, to_b);                                                                             \
        got(&c, to_c);                                                                             \
    } while (0)
    SEND(one, 0xffffff, QKEY, false, true, false);
    SEND(two, 0xffffff, QKEY, false, true, true);
    SEND(two, 0xffffff, QKEY + 1, false, false, false);
    SEND(two, b.qp->qp_num, QKEY, false, false, false); /* not a group without its number */
    attach(&a, 2);                                      /* one's own messages come back */
    SEND(two, 0xffffff, QKEY, true, true, true);
    detach(&b, 2);
    SEND(two, 0xffffff, QKEY, true, false, true);
    SEND(one, 0xffffff, QKEY, false, true, false);
    CHECK_EQ(ibv_attach_mcast(c.qp, &gid, MLID + 1), 0); /* another group: another MLID */
    SEND(one, 0xffffff, QKEY, false, true, false);
    CHECK_EQ(ibv_detach_mcast(c.qp, &gid, MLID + 1), 0);
#undef SEND
    detach(&a, 2);
    detach(&b, 1);
    detach(&c, 2);
    CHECK_EQ(ibv_destroy_ah(one), 0);
    CHECK_EQ(ibv_destroy_ah(two), 0);
    end_close(&c);
    close_two(&a, &b);
}

static void member_right(int fd, pid_t other)
{
    struct end e;
    char never;

    (void)other;
    meet(fd);
    ud_open(&e, 0);
    CHECK_EQ(post_recv(&e, 1, 1000, 140), 0);
    attach(&e, 7);
    meet(fd);
    got(&e, true);
    meet(fd);
    if (read(fd, &never, 1) >= 0)
        pause();
}

/* The sender has looked for members before the other joined; later the other dies attached. */
static void member_left(int fd, pid_t other)
{
    struct end e;
    struct ibv_ah *ah;

    ud_open(&e, 0);
    ah = group_ah(&e, 7);
    fill(e.buf, 100, 6);
    ud_send(&e, ah, 0xffffff, QKEY);
    meet(fd);
    meet(fd);
    ud_send(&e, ah, 0xffffff, QKEY);
    meet(fd);
    CHECK_EQ(kill(other, SIGKILL), 0);
    for (int i = 0; i < 100; i++) {
        ud_send(&e, ah, 0xffffff, QKEY);
        usleep(100);
    }
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    end_close(&e);
}

static void groups_of_processes(void)
{
    in_two(member_left, member_right);
}

static void groups_roce(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    in_two(member_left, member_right);
}

/* Where packets go to other hosts, groups stay on this one, and one line says so. */
static void groups_over_packets(void)
{
    FILE *log = tmpfile();
    int err = dup(2), lines = 0;
    struct ibv_ah *ah;
    char line[512];
    struct end e;

    CHECK(log && err >= 0);
    setenv("SOFTHCA_WIRE", "udp", 1);
    setenv("SOFTHCA_UDP", "127.0.0.0/8", 1);
    ud_open(&e, 0);
    CHECK(dup2(fileno(log), 2) >= 0);
    attach(&e, 1);
    attach(&e, 2);
    CHECK(dup2(err, 2) >= 0);
    rewind(log);
    while (fgets(line, sizeof line, log))
        lines += strstr(line, "multicast groups end at this host") != NULL;
    CHECK_EQ(lines, 1);
    ah = group_ah(&e, 1);
    CHECK_EQ(post_recv(&e, 1, 1000, 140), 0);
    fill(e.buf, 100, 6);
    ud_send(&e, ah, 0xffffff, QKEY);
    got(&e, true);
    detach(&e, 1);
    detach(&e, 2);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    end_close(&e);
    fclose(log);
    close(err);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"partitions", partitions},
        {"pkey_table", pkey_table},
        {"gid_table", gid_table},
        {"gids_of_version_1", gids_of_version_1},
        {"gids_of_version_2", gids_of_version_2},
        {"subnets", subnets},
        {"lids", lids},
        {"gid_rows", gid_rows},
        {"vlans", vlans},
        {"vlans_without_a_router", vlans_without_a_router},
        {"roce_frames", roce_frames},
        {"path_mtu", path_mtu},
        {"datagram_partitions", datagram_partitions},
        {"way_back", way_back},
        {"attach_rules", attach_rules},
        {"groups_of_one_process", groups_of_one_process},
        {"groups_of_processes", groups_of_processes},
        {"groups_roce", groups_roce},
        {"groups_over_packets", groups_over_packets},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
