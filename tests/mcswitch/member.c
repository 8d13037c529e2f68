/* SPDX-License-Identifier: BSD-3-Clause */
/* A member with plain verbs; see member.h. */
#include "config.h"

#include "member.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "star.h"

enum {
    patience_ms = 30000,
    patience_s = 60,
    rnr_timer = 12, /* 0.64 ms */
    control_head = 32,
    control_slot = 1024,
    word_at = MEMBER_SOURCE + MEMBER_DATA,
    controls_at = word_at + 64,
};

static const uint64_t control_va = UINT64_MAX;
static const uint32_t control_rkey = UINT32_MAX;

/* ---- the device ---- */

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    CHECK(list);
    for (int i = 0; list[i] && !context; i++)
        if (!name || strcmp(ibv_get_device_name(list[i]), name) == 0)
            context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    CHECK(context);
    return context;
}

/* The first of the form ::ffff:a.b.c.d. */
static int plain_gid(struct ibv_context *context)
{
    static const uint8_t plain[12] = {[10] = 0xff, [11] = 0xff};
    union ibv_gid gid;

    for (int i = 0; i < 64; i++)
        if (ibv_query_gid(context, 1, i, &gid) == 0 && memcmp(gid.raw, plain, sizeof plain) == 0 &&
            gid.raw[12] != 0)
            return i;
    CHECK(!"an IPv4 address");
    return -1;
}

void member_open(struct member *m, const struct member_options *o)
{
    memset(m, 0, sizeof *m);
    m->options = *o;
    m->client.fd = -1;
    m->context = open_device(o->device);
    if (o->gid_index < 0)
        m->options.gid_index = plain_gid(m->context);
    CHECK(ibv_query_gid(m->context, 1, m->options.gid_index, &m->gid) == 0);
    m->region =
        mmap(NULL, MEMBER_REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m->region != MAP_FAILED);
    CHECK((m->pd = ibv_alloc_pd(m->context)) != NULL);
    CHECK((m->mr = ibv_reg_mr(m->pd, m->region, MEMBER_REGION,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
    CHECK((m->cq = ibv_create_cq(m->context, 256, NULL, NULL, 0)) != NULL);
}

void member_close(struct member *m)
{
    CHECK(ibv_destroy_cq(m->cq) == 0 && ibv_dereg_mr(m->mr) == 0);
    CHECK(ibv_dealloc_pd(m->pd) == 0 && ibv_close_device(m->context) == 0);
    munmap(m->region, MEMBER_REGION);
}

/* ---- queue pairs ---- */

static struct ibv_qp *new_qp(struct member *m)
{
    struct ibv_qp_init_attr init = {
        .send_cq = m->cq,
        .recv_cq = m->cq,
        .cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp *qp = ibv_create_qp(m->pd, &init);

    CHECK(qp);
    CHECK(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    return qp;
}

static enum ibv_mtu mtu_of(unsigned bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (256u << (mtu - IBV_MTU_256) < bytes)
        mtu++;
    return mtu;
}

static void connect_qp(struct member *m, struct ibv_qp *qp, const uint8_t gid[16], uint32_t qpn,
                       uint32_t rq_psn, uint32_t sq_psn)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_of(m->options.mtu),
        .dest_qp_num = qpn,
        .rq_psn = rq_psn,
        .min_rnr_timer = rnr_timer,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.sgid_index = (uint8_t)m->options.gid_index, .hop_limit = 64}}};

    memcpy(a.ah_attr.grh.dgid.raw, gid, 16);
    CHECK(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = (uint8_t)m->options.timeout;
    a.retry_cnt = (uint8_t)m->options.retries;
    a.rnr_retry = 7; /* for ever: waiting for the lock */
    a.sq_psn = sq_psn;
    CHECK(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- joining ---- */

static void done(struct tk_mcsw_client *c)
{
    if (tk_mcsw_wait(c) != TK_MCSW_DONE) {
        fprintf(stderr, "refused: %s\n", c->why);
        exit(1);
    }
}

void member_dial(struct member *m, const char *controller, const struct tk_mcsw_job *job)
{
    struct sockaddr_storage to;
    char why[160];

    CHECK(tk_mcsw_resolve(controller, &to, why, sizeof why));
    tk_mcsw_dial(&m->client, &to, job, patience_ms);
    done(&m->client);
    tk_mcsw_probe(&m->client, patience_ms);
    done(&m->client);
}

void member_ask_to_join(struct member *m, uint32_t group, int rank)
{
    bool frames = m->client.info.planes & 1u << TK_MCSW_FRAMES && m->gid.raw[0] == 0;

    m->send = new_qp(m);
    m->receive = new_qp(m);
    m->own =
        (struct tk_mcsw_member){.rank = (uint32_t)rank,
                                .plane = frames ? TK_MCSW_FRAMES : TK_MCSW_UDP,
                                .mtu = m->options.mtu,
                                .sqpn = m->send->qp_num,
                                .sqpsn = (0xffffe0 + (uint32_t)rank) & 0xffffff, /* wraps soon */
                                .rqpn = m->receive->qp_num,
                                .rqpsn = (0xffff80 + 3 * (uint32_t)rank) & 0xffffff,
                                .base = (uint64_t)(uintptr_t)m->region,
                                .rkey = m->mr->rkey};
    memcpy(m->own.gid, m->gid.raw, 16);
    m->psn = m->own.sqpsn;
    tk_mcsw_join(&m->client, group, &m->own, patience_ms);
}

void member_connect(struct member *m)
{
    const struct tk_mcsw_client *c = &m->client;

    done(&m->client);
    connect_qp(m, m->send, c->info.vip[m->own.plane].requests, c->place.vrqpn, 0, m->own.sqpsn);
    connect_qp(m, m->receive, c->info.vip[m->own.plane].copies, c->place.vsqpn, m->own.rqpsn, 0);
}

void member_join(struct member *m, const char *controller, int rank, int ranks)
{
    struct tk_mcsw_client *c = &m->client;
    struct tk_mcsw_job job = {.derived = 0};
    struct member_peer peer;
    uint32_t group;

    CHECK(ranks <= MEMBERS_MOST);
    if (rank == 0) { /* first: without a key of its own the switch takes the job's from it */
        CHECK(tk_mcsw_job_make(&job, NULL));
        member_dial(m, controller, &job);
        tk_mcsw_create(c, (uint32_t)ranks, patience_ms);
        done(c);
    }
    group = c->group;
    star_share(&job, sizeof job);
    star_share(&group, sizeof group);
    if (rank > 0)
        member_dial(m, controller, &job);
    member_ask_to_join(m, group, rank);
    done(c);
    peer = (struct member_peer){m->own.base, m->own.rkey, c->place.vsqpn};
    star_gather(&peer, sizeof peer, m->peers);
    member_connect(m);
    star_barrier();
}

void member_part(struct member *m)
{
    if (m->client.fd >= 0) {
        tk_mcsw_leave(&m->client, m->client.place.group, m->own.rank, patience_ms);
        tk_mcsw_wait(&m->client);
    }
    tk_mcsw_close(&m->client);
    CHECK(ibv_destroy_qp(m->send) == 0 && ibv_destroy_qp(m->receive) == 0);
}

/* ---- repair ---- */

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

    CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

void member_repair(struct member *m, uint32_t what)
{
    const struct tk_mcsw_client *c = &m->client;
    uint32_t far = 1 << 22;

    if (what & TK_MCSW_REPAIR_SQP) {
        m->own.sqpsn = m->psn = (m->psn + far) & 0xffffff;
        to_init(m->send);
        connect_qp(m, m->send, c->info.vip[m->own.plane].requests, c->place.vrqpn, 0, m->own.sqpsn);
    }
    if (what & TK_MCSW_REPAIR_RQP) {
        m->own.rqpsn = (m->own.rqpsn + far) & 0xffffff;
        to_init(m->receive);
        connect_qp(m, m->receive, c->info.vip[m->own.plane].copies, c->place.vsqpn, m->own.rqpsn,
                   0);
    }
    tk_mcsw_repair(&m->client, c->place.group, what, &m->own, patience_ms);
    done(&m->client);
}

static void take_event(void *context, const struct tk_mcsw_event *e)
{
    struct tk_mcsw_event *wanted = context;

    if (e->rank == wanted->rank && e->kind == wanted->kind)
        wanted->group = e->group;
}

/* Events that came before are in the socket still, since nothing else reads it. */
void member_await_event(struct member *m, uint32_t rank, uint32_t kind)
{
    struct tk_mcsw_event wanted = {.rank = rank, .kind = kind};
    time_t limit = time(NULL) + patience_s;

    m->client.event = take_event;
    m->client.context = &wanted;
    while (wanted.group == 0) {
        CHECK(m->client.fd >= 0 && time(NULL) < limit);
        tk_mcsw_step(&m->client);
        usleep(1000);
    }
    m->client.event = NULL;
}

/* ---- control packets ---- */

static void put(uint8_t **at, uint64_t value, unsigned bytes)
{
    struct tk_mcsw_frame f = {*at, *at + bytes};

    tk_mcsw_put(&f, value, bytes);
    *at += bytes;
}

/* Writes a control to the next slot; the data behind it begins with the PSN after its own. */
static uint32_t write_control(struct member *m, unsigned flags, uint32_t set, uint8_t **from)
{
    uint8_t *p = m->region + controls_at + control_slot * (m->controls++ & 3);
    const struct tk_mcsw_place *place = &m->client.place;

    *from = p;
    put(&p, 0x4d43, 2);
    put(&p, 1, 1);
    put(&p, flags, 1);
    put(&p, place->group, 4);
    put(&p, place->key, 8);
    put(&p, (m->psn + 1) & 0xffffff, 4);
    put(&p, UINT32_MAX, 4);
    put(&p, 0, 2);
    put(&p, flags & BITMAP ? 0 : (unsigned)__builtin_popcount(set), 2);
    put(&p, flags & BITMAP ? set : 0, 4);
    for (unsigned i = 0; i < MEMBERS_MOST && !(flags & BITMAP); i++)
        if (set & 1u << i) {
            put(&p, m->peers[i].vsqpn, 4);
            put(&p, m->peers[i].rkey, 4);
            put(&p, m->peers[i].base, 8);
        }
    return (uint32_t)(p - *from);
}

/* ---- posting ---- */

struct list {
    struct ibv_send_wr wr[4];
    struct ibv_sge sge[4];
    unsigned n;
};

static void add(struct member *m, struct list *l, const uint8_t *from, uint32_t bytes, uint64_t to,
                uint32_t rkey)
{
    struct ibv_send_wr *w = &l->wr[l->n];
    uint32_t mtu = m->options.mtu;

    l->sge[l->n] = (struct ibv_sge){(uint64_t)(uintptr_t)from, bytes, m->mr->lkey};
    *w = (struct ibv_send_wr){.sg_list = &l->sge[l->n],
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .wr = {.rdma = {.remote_addr = to, .rkey = rkey}}};
    if (l->n)
        l->wr[l->n - 1].next = w;
    l->n++;
    m->psn = (m->psn + (bytes + mtu - 1) / mtu) & 0xffffff;
    if (rkey != control_rkey)
        m->copies += (uint64_t)__builtin_popcount(m->set) * ((bytes + mtu - 1) / mtu);
}

void member_post(struct member *m, const struct broadcast *b)
{
    uint64_t *word = (uint64_t *)(void *)(m->region + word_at);
    struct list l = {.n = 0};
    struct ibv_send_wr *bad;
    uint8_t *from;
    uint32_t bytes;

    if (b->flags || b->control) {
        m->set = b->set;
        bytes = b->control_bytes;
        if (b->control)
            memcpy(from = m->region + controls_at + 4 * control_slot, b->control, bytes);
        else
            bytes = write_control(m, b->flags, b->set, &from);
        add(m, &l, from, bytes, control_va, control_rkey);
    }
    add(m, &l, m->region + MEMBER_SOURCE, b->bytes, b->offset, 0);
    *word = b->value;
    add(m, &l, (const uint8_t *)word, sizeof *word, MEMBER_FLAGS + 8 * m->own.rank, 0);
    if (b->release) {
        bytes = write_control(m, RELEASE, 0, &from);
        add(m, &l, from, bytes, control_va, control_rkey);
    }
    l.wr[l.n - 1].send_flags = IBV_SEND_SIGNALED;
    CHECK(ibv_post_send(m->send, l.wr, &bad) == 0);
}

enum ibv_wc_status member_reap(struct member *m)
{
    time_t limit = time(NULL) + patience_s;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(m->cq, 1, &wc)) == 0)
        CHECK(time(NULL) < limit);
    CHECK(n == 1);
    return wc.status;
}
